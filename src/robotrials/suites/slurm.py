"""A batch script for Slurm that carries a suite out, and goes on where it was stopped."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def batch_script(job: str, gpus: int, words: Sequence[str]) -> str:
    """The script; ``words`` follow ``robotrials suite``.

    Slurm sends SIGTERM two minutes before the time is up; what is done by then is written down, and the job is put
    into the queue again, where the same command goes on.
    """
    command = shlex.join(["robotrials", "suite", *words])
    resources = f"#SBATCH --gpus-per-node={gpus}\n" if gpus else ""
    return f"""\
#!/usr/bin/env bash
#SBATCH --job-name={job}
#SBATCH --nodes=1
#SBATCH --ntasks=1
{resources}#SBATCH --cpus-per-task={max(8, 12 * gpus)}
#SBATCH --mem={max(32, 96 * gpus)}G
#SBATCH --time=24:00:00
#SBATCH --output=slurm-%x-%j.log
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120
# Sizes are a guess: change them to what your cluster has. Then: sbatch THIS_FILE
set -euo pipefail
export OMP_NUM_THREADS=1
export HF_HUB_OFFLINE="${{HF_HUB_OFFLINE:-0}}"

# Once requeued, the same command goes on where this one stopped.
stopped() {{ kill -TERM "$work" 2>/dev/null || true; wait "$work" || true; scontrol requeue "$SLURM_JOB_ID"; exit 0; }}
trap stopped TERM
{command} &
work=$!
wait "$work"
"""
