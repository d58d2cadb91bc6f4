# robotrials-metaworld: Meta-World, all fifty tasks.
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libosmesa6 \
    && rm -rf /var/lib/apt/lists/*
RUN robotrials bench install metaworld && rm -rf "${ROBOTRIALS_HOME}/cache"

ENV PATH=/opt/robotrials/home/environments/metaworld/current/bin:${PATH} \
    ROBOTRIALS_BENCHMARK=metaworld \
    MUJOCO_GL=egl \
    ROBOTRIALS_SMOKE="--env.task=reach-v3 --env.episode_length=20"
USER 1000
CMD ["smoke"]
