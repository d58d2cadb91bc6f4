#!/usr/bin/env bash
# smoke [FLAGS OF robotrials eval]: one episode of the benchmark that this image is for, with a random policy unless the flags name
# another, and its metrics.json, in $SMOKE_RESULTS (default: a folder in /tmp).
set -euo pipefail
: "${ROBOTRIALS_BENCHMARK:?this image is for no benchmark}"
results=${SMOKE_RESULTS:-$(mktemp -d)}
read -d '' -ra flags <<<"${ROBOTRIALS_SMOKE:-}" || true # it ends without the delimiter, by the end of the text
[[ " $* " == *" --policy."* ]] || flags+=(--policy.type=random)
robotrials eval --env.type="$ROBOTRIALS_BENCHMARK" "${flags[@]}" --eval.n_episodes=1 --eval.batch_size=1 \
  --output_dir="$results/run" "$@"
robotrials metrics "$results/run" --output_dir="$results"
