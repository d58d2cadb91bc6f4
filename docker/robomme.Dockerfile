# robotrials-robomme: RoboMME. It runs on gymnasium 0.29 and numpy 1.26, which its dependencies would move on from: hence the overrides.
# It draws with Vulkan; a GPU is expected: --docker.gpus=all.
ARG BASE=robotrials-base
FROM ${BASE}
ARG PIP_INDEX_URL
ARG UV_INDEX_URL
USER 0

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgl1 libglib2.0-0 libvulkan1 libx11-6 libxext6 \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir -p /usr/share/vulkan/icd.d \
    && echo '{"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3.0"}}' \
       >/usr/share/vulkan/icd.d/nvidia_icd.json

ARG COMMIT=0f8a584df3b70956485075acf930f9e40a7d5705
RUN printf 'gymnasium==0.29.1\nnumpy==1.26.4\n' >/opt/robotrials/overrides.txt \
    && /opt/robotrials/venv/bin/uv venv --quiet --python python3 /opt/robotrials/sim \
    && /opt/robotrials/venv/bin/uv pip install --no-cache --quiet --python /opt/robotrials/sim/bin/python \
       --override /opt/robotrials/overrides.txt /opt/robotrials/source \
       "robomme @ git+https://github.com/RoboMME/robomme_benchmark@${COMMIT}" \
    && /opt/robotrials/sim/bin/python -c "import robomme"

ENV PATH=/opt/robotrials/sim/bin:${PATH} \
    NVIDIA_DRIVER_CAPABILITIES=all \
    VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/nvidia_icd.json \
    ROBOTRIALS_BENCHMARK=robomme \
    ROBOTRIALS_SMOKE="--env.task=PickXtimes --env.episode_length=5"
USER 1000
CMD ["smoke"]
