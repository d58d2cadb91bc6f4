# robotrials-base: what every image begins with. Debian 12 with its Python 3.11, robotrials in an environment of its own, and a user who is
# not root. From the root of the repository: docker build -f docker/base.Dockerfile -t robotrials-base .
ARG BASE=debian:12-slim
FROM ${BASE}

# Where packages come from, if not from the public index: --build-arg PIP_INDEX_URL=...
ARG PIP_INDEX_URL
ARG UV_INDEX_URL

ENV LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1 \
    ROBOTRIALS_HOME=/opt/robotrials/home

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# Debian 12 changes its versions for the sake of security alone.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home robotrials

COPY pyproject.toml README.md LICENSE /opt/robotrials/source/
COPY requirements/tested.txt /opt/robotrials/source/requirements/
COPY src /opt/robotrials/source/src
RUN python3 -m venv /opt/robotrials/venv \
    && /opt/robotrials/venv/bin/python -m pip install --no-cache-dir --quiet "uv==0.*" \
    && /opt/robotrials/venv/bin/uv pip install --no-cache --quiet --compile-bytecode --python /opt/robotrials/venv/bin/python \
       --constraint /opt/robotrials/source/requirements/tested.txt "/opt/robotrials/source[onnx,remote]"
ENV PATH=/opt/robotrials/venv/bin:${PATH}

COPY docker/smoke.sh /usr/local/bin/smoke

USER 1000
WORKDIR /tmp
CMD ["robotrials", "--help"]
