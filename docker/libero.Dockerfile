# robotrials-libero: LIBERO and LIBERO-PRO, with the assets that its package brings (620 MB).
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libosmesa6 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/*
RUN robotrials bench install libero && rm -rf "${ROBOTRIALS_HOME}/cache"

# Whatever imports LIBERO here finds its files, is asked nothing, and writes nothing to a home folder.
RUN LIBERO_CONFIG_PATH=/opt/robotrials/libero robotrials bench exec libero \
    python -c "import libero.libero as libero; libero.set_libero_default_path()"

ENV PATH=/opt/robotrials/home/environments/libero/current/bin:${PATH} \
    ROBOTRIALS_BENCHMARK=libero \
    MUJOCO_GL=egl \
    NUMBA_CACHE_DIR=/tmp/numba \
    LIBERO_CONFIG_PATH=/opt/robotrials/libero \
    ROBOTRIALS_SMOKE="--env.task=libero_spatial --env.task_ids=0 --env.episode_length=5 --env.observation_height=64 --env.observation_width=64"
USER 1000
CMD ["smoke"]
