# robotrials-robocasa: RoboCasa365. It needs the main branch of robosuite, asserts one version of numpy and of mujoco when it is imported, and
# pins an old lerobot: so it is installed without its dependencies, beside those that it uses in a simulation. Both are checkouts that are
# installed editably, because their data files are not part of a package. Assets: textures, fixtures and lightwheel's objects.
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libosmesa6 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/*

# A commit makes a build repeatable; the defaults are the branches that RoboCasa asks for.
ARG ROBOSUITE=master
ARG ROBOCASA=main
RUN git clone --quiet --filter=blob:none https://github.com/ARISE-Initiative/robosuite.git /opt/robosuite \
    && git -C /opt/robosuite checkout --quiet "${ROBOSUITE}" \
    && git clone --quiet --filter=blob:none https://github.com/robocasa/robocasa.git /opt/robocasa \
    && git -C /opt/robocasa checkout --quiet "${ROBOCASA}"

# What RoboCasa 1.0 asserts; the import below fails where it asserts others.
ARG NUMPY=2.2.5
ARG MUJOCO=3.3.1
RUN /opt/robotrials/venv/bin/uv venv --quiet --python python3 /opt/robotrials/sim \
    && /opt/robotrials/venv/bin/uv pip install --no-cache --quiet --python /opt/robotrials/sim/bin/python \
       "numpy==${NUMPY}" "mujoco==${MUJOCO}" numba scipy pygame pillow opencv-python-headless pyyaml tqdm termcolor imageio h5py lxml \
       gymnasium qpsolvers quadprog /opt/robotrials/source \
    && /opt/robotrials/venv/bin/uv pip install --no-cache --quiet --python /opt/robotrials/sim/bin/python --no-deps \
       --editable /opt/robosuite --editable /opt/robocasa
ENV PATH=/opt/robotrials/sim/bin:${PATH} \
    MUJOCO_GL=egl \
    NUMBA_CACHE_DIR=/tmp/numba

# The download asks before it begins; a closed pipe is no failure of `yes`.
RUN python -m robocasa.scripts.setup_macros \
    && (yes || true) | python -m robocasa.scripts.download_kitchen_assets --type tex tex_generative fixtures_lw objs_lw \
    && python -c "import robocasa"

ENV ROBOTRIALS_BENCHMARK=robocasa \
    ROBOTRIALS_SMOKE="--env.task=CloseFridge --env.episode_length=5"
USER 1000
CMD ["smoke"]
