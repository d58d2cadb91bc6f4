#!/usr/bin/env bash
# ci_evaluate.sh FOLDER: evaluates $POLICY on $BENCHMARK, its simulator in the container robotrials-<benchmark>, and leaves metrics.json,
# junit.xml, task_descriptions.json, the report and the videos in FOLDER. $ENV_FLAGS take the place of the image's own smoke test;
# $N_EPISODES of every task (1); $MIN_SUCCESS is asked for, if it is set. The exit status is that of eval, else that of metrics.
set -euo pipefail
results=${1:?"usage: BENCHMARK=NAME ci_evaluate.sh FOLDER"}
: "${BENCHMARK:?"names the benchmark, such as pusht"}"
image=robotrials-${BENCHMARK//_/-}
# Flags may stand on several lines, as in a YAML block: read to the end, which read answers with 1.
read -rd '' -a policy <<<"${POLICY:---policy.type=random}" || true
read -rd '' -a flags <<<"${ENV_FLAGS:-$(docker run --rm --network=none --entrypoint= "$image" printenv ROBOTRIALS_SMOKE || true)}" || true
mkdir -p "$results"

status=0
robotrials eval "${policy[@]}" --env.type="$BENCHMARK" "${flags[@]}" --eval.n_episodes="${N_EPISODES:-1}" --eval.record=all \
  --eval.runtime=docker --docker.image="$image" --docker.pull=never --output_dir="$results/run" || status=$?
[ -f "$results/run/run.json" ] || exit "$status"

judged=0
robotrials metrics "$results/run" --output_dir="$results" ${MIN_SUCCESS:+--min-success="$MIN_SUCCESS"} || judged=$?
python3 - "$results" <<'DESCRIPTIONS'
import json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
metrics = json.loads((folder / "metrics.json").read_text())
(folder / "task_descriptions.json").write_text(json.dumps(metrics["task_descriptions"], indent=2) + "\n")
DESCRIPTIONS
[ "$status" = 0 ] || exit "$status"
exit "$judged"
