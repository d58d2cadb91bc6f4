#!/usr/bin/env bash
# submit_shards.sh RUN N FLAGS...: a run in N shards, RUN/shard-0 and so on, then merged into RUN/all.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=$1 n=$2
shift 2

mkdir -p "$run/slurm"
run=$(cd "$run" && pwd)
shards=$(sbatch --parsable --output="$run/slurm/%x-%a.log" --array="0-$((n - 1))" "$here/shards.sbatch" "$run" "$n" "$@")
merge=$(sbatch --parsable --output="$run/slurm/%x-%j.log" --dependency="afterok:$shards" --kill-on-invalid-dep=yes \
  "$here/merge.sbatch" "$run")
echo "shards: job $shards, merge: job $merge; the run will be in $run/all, what they say is in $run/slurm"
