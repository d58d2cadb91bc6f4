#!/usr/bin/env bash
# submit_workers.sh RUN N FLAGS...: a run in the folder RUN/all, coordinated by one job, played by N jobs of workers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=$1 n=$2
shift 2

mkdir -p "$run/slurm"
run=$(cd "$run" && pwd)
coordinator=$(sbatch --parsable --output="$run/slurm/%x-%j.log" "$here/coordinator.sbatch" "$run" "$@")
workers=$(sbatch --parsable --output="$run/slurm/%x-%a.log" --array="0-$((n - 1))" --dependency="after:$coordinator" \
  "$here/workers.sbatch" "$run" "$coordinator")
echo "coordinator: job $coordinator, workers: job $workers; the run is in $run/all, what they say in $run/slurm"
