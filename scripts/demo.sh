#!/usr/bin/env bash
# The README's demo: a small learned policy, then the scripted expert, on the same episodes.
set -euo pipefail
tasks=reach-v3,drawer-open-v3,door-open-v3,peg-insert-side-v3
common=(--env.type=metaworld --env.task="$tasks" --eval.n_episodes=10 --eval.record=first:1)

robotrials eval --policy.path=builtin:metaworld-bc "${common[@]}" --output_dir=outputs/demo/learned
robotrials eval --policy.type=expert "${common[@]}" --output_dir=outputs/demo/expert
echo
echo "Videos:"
find outputs/demo -name '*.mp4' | sort
