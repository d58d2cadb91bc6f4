# robotrials-robosuite: robosuite's tasks. What Numba compiles goes to /tmp: the root file system may be read-only.
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libosmesa6 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/*
# Its keyboard driver (evdev) is compiled.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev linux-libc-dev python3-dev \
    && robotrials bench install robosuite \
    && apt-get purge -y --auto-remove gcc libc6-dev linux-libc-dev python3-dev \
    && rm -rf /var/lib/apt/lists/* "${ROBOTRIALS_HOME}/cache"

ENV PATH=/opt/robotrials/home/environments/robosuite/current/bin:${PATH} \
    ROBOTRIALS_BENCHMARK=robosuite \
    MUJOCO_GL=egl \
    NUMBA_CACHE_DIR=/tmp/numba \
    ROBOTRIALS_SMOKE="--env.task=Lift --env.episode_length=5"
USER 1000
CMD ["smoke"]
