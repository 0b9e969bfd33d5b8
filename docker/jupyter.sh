#!/bin/sh
# Starts JupyterLab in the image of docker/jupyter.Dockerfile, and never without a token.
set -eu

# Whoever knows the token runs any program in the container: as hard to guess as a key of 128 bits
# in hexadecimal.
shortest=32
token="${JUPYTER_TOKEN-}"
if [ "${#token}" -lt "${shortest}" ]; then
  echo "JUPYTER_TOKEN: expected at least ${shortest} characters, found ${#token}; for example:" >&2
  echo '  docker run -e JUPYTER_TOKEN="$(openssl rand -hex 16)" ...' >&2
  exit 2
fi
# 0.0.0.0 is the container's own address: who may reach it is said by `docker run --publish`.
exec jupyter lab --no-browser --ip=0.0.0.0 --port=8888 --port-retries=0 "$@"
