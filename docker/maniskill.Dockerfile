# robotrials-maniskill: ManiSkill 3, with a software Vulkan that bench install unpacks beside it; a GPU is not needed.
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgl1 libglib2.0-0 libx11-6 libvulkan1 \
    && rm -rf /var/lib/apt/lists/*
RUN robotrials bench install maniskill && rm -rf "${ROBOTRIALS_HOME}/cache"

ENV PATH=/opt/robotrials/home/environments/maniskill/current/bin:${PATH} \
    ROBOTRIALS_BENCHMARK=maniskill \
    ROBOTRIALS_SMOKE="--env.task=PickCube --env.episode_length=5"
USER 1000
CMD ["smoke"]
