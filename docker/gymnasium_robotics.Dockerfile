# robotrials-gymnasium-robotics: the Fetch tasks of Gymnasium-Robotics.
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libosmesa6 \
    && rm -rf /var/lib/apt/lists/*
RUN robotrials bench install gymnasium_robotics && rm -rf "${ROBOTRIALS_HOME}/cache"

ENV PATH=/opt/robotrials/home/environments/gymnasium_robotics/current/bin:${PATH} \
    ROBOTRIALS_BENCHMARK=gymnasium_robotics \
    MUJOCO_GL=egl \
    ROBOTRIALS_SMOKE="--env.task=FetchReach-v4"
USER 1000
CMD ["smoke"]
