# JupyterLab over the image of docker/Dockerfile: to look at workloads by hand, and never to measure.
#
#   docker build -f docker/jupyter.Dockerfile --build-arg CI_PERF_IMAGE=NAME@sha256:... -t ci-perf-jupyter .
#   docker run --rm -e JUPYTER_TOKEN="$(openssl rand -hex 16)" -p 127.0.0.1:8888:8888 ci-perf-jupyter
#
# Publish it on 127.0.0.1 only, and come from elsewhere through a tunnel: it speaks plain HTTP.

# No default: which image it is built on is said by its digest, or it is not built.
ARG CI_PERF_IMAGE
FROM ${CI_PERF_IMAGE}

# See docker/Dockerfile.
ARG PIP_INDEX_URL

USER 0
COPY requirements/jupyter.txt docker/jupyter.sh /usr/local/share/ci-perf/
RUN unset PIP_CONSTRAINT \
    && PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install \
         --no-cache-dir --disable-pip-version-check --only-binary=:all: --no-deps \
         --require-hashes --requirement /usr/local/share/ci-perf/jupyter.txt \
    && python3 /usr/local/share/ci-perf/base.py torch

LABEL org.opencontainers.image.title="ci-perf-jupyter" \
      org.opencontainers.image.description="JupyterLab beside ci-perf"

USER 10001:10001
EXPOSE 8888
CMD ["/bin/sh", "/usr/local/share/ci-perf/jupyter.sh"]
