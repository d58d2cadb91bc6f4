# robotrials-pusht: PushT. OpenCV, which gym-pusht draws with, needs the two libraries.
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgl1 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/*
RUN robotrials bench install pusht && rm -rf "${ROBOTRIALS_HOME}/cache"

ENV PATH=/opt/robotrials/home/environments/pusht/current/bin:${PATH} \
    ROBOTRIALS_BENCHMARK=pusht \
    ROBOTRIALS_SMOKE="--env.episode_length=20"
USER 1000
CMD ["smoke"]
