# robotrials-robosuite: robosuite's tasks. What Numba compiles goes to /tmp: the root file system may be read-only.
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libegl-mesa0 libgl1-mesa-dri libosmesa6 libgl1 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/*
RUN robotrials bench install robosuite && rm -rf "${ROBOTRIALS_HOME}/cache"

ENV PATH=/opt/robotrials/home/environments/robosuite/current/bin:${PATH} \
    ROBOTRIALS_BENCHMARK=robosuite \
    MUJOCO_GL=egl \
    NUMBA_CACHE_DIR=/tmp/numba \
    ROBOTRIALS_SMOKE="--env.task=Lift --env.episode_length=5"
USER 1000
CMD ["smoke"]
