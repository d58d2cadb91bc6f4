#!/usr/bin/env bash
# ci_image.sh: pulls the image of $BENCHMARK from $REGISTRY ($TAG), or builds it, and calls it robotrials-<benchmark>.
set -euo pipefail
: "${BENCHMARK:?"names the benchmark, such as pusht"}"
image=robotrials-${BENCHMARK//_/-}
if [ -n "${REGISTRY:-}" ]; then
  docker pull "$REGISTRY/$image:${TAG:-latest}"
  docker tag "$REGISTRY/$image:${TAG:-latest}" "$image"
else
  "$(dirname "$0")/build_eval_images.sh" --benchmarks="$BENCHMARK" --no-smoke
fi
