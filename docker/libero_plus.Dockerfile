# robotrials-libero-plus: LIBERO-plus. Its code is a repository that pins packages of 2022 (numpy 1.22, gym 0.25); here it runs on the pins
# of `bench install`, from a checkout that is not installed, so that another package called libero does not get in its way. Its assets are
# an archive of 6 GB; ASSETS=false leaves them out: then camera, robot, language and noise work, with LIBERO's own.
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0

# libmagickwand: its noise is drawn by ImageMagick.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libosmesa6 libglib2.0-0 \
       libmagickwand-6.q16-6 unzip \
    && rm -rf /var/lib/apt/lists/*
RUN robotrials bench install libero_plus && rm -rf "${ROBOTRIALS_HOME}/cache"

ARG COMMIT=4976dc30028e805ff8094b55501d532c48fec182
RUN git init --quiet /opt/LIBERO-plus \
    && git -C /opt/LIBERO-plus fetch --quiet --depth 1 https://github.com/sylvestf/LIBERO-plus.git "${COMMIT}" \
    && git -C /opt/LIBERO-plus checkout --quiet FETCH_HEAD \
    && rm -rf /opt/LIBERO-plus/.git

ARG ASSETS=true
RUN if [ "${ASSETS}" = true ]; then \
        /opt/robotrials/venv/bin/uv venv --quiet /tmp/hub \
        && /opt/robotrials/venv/bin/uv pip install --quiet --no-cache --python /tmp/hub/bin/python "huggingface_hub>=1.4" \
        && /tmp/hub/bin/hf download Sylvest/LIBERO-plus assets.zip --repo-type dataset --local-dir /tmp/assets \
        && unzip -q /tmp/assets/assets.zip -d /opt/LIBERO-plus/libero/libero \
        && rm -rf /tmp/hub /tmp/assets; \
    fi

ENV PATH=/opt/robotrials/home/environments/libero_plus/current/bin:${PATH} \
    ROBOTRIALS_BENCHMARK=libero_plus \
    MUJOCO_GL=egl \
    NUMBA_CACHE_DIR=/tmp/numba \
    ROBOTRIALS_SMOKE="--env.root=/opt/LIBERO-plus --env.task=libero_spatial --env.task_ids=0 --env.episode_length=5"
USER 1000
CMD ["smoke"]
