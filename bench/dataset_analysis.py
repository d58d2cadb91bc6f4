"""What an analysis costs: 500 episodes x 300 frames x 16 joints, from parquet to the page.

    python bench/dataset_analysis.py [--episodes 500] [--processes N]

The dataset has two ways to move, which is the dear case: only then are the episodes resampled.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.datasets.analysis.made_up import strategies, write_dataset

from robotrials.datasets.analysis.analyse import analyse
from robotrials.datasets.analysis.export import write
from robotrials.datasets.analysis.settings import AnalysisSettings
from robotrials.machine.threads import available_cores


def cpu_seconds() -> float:
    """Of this process and of those that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)


def peak(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--modes", type=int, default=2)
    parser.add_argument("--processes", type=int, default=available_cores())
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = write_dataset(Path(folder) / "ds", strategies(arguments.episodes, 300, 16, arguments.modes, 0))
        wall, cpu = time.monotonic(), cpu_seconds()
        analysis = analyse([root], AnalysisSettings(), processes=arguments.processes)
        analysed = cpu_seconds() - cpu
        page = write(analysis, Path(folder) / "out")
        figures = {
            "episodes": arguments.episodes,
            "frames": 300,
            "joints": 16,
            "modes_found": [found.modes for found in analysis.sets[0].modes],
            "analysis_cpu_s": round(analysed, 1),
            "all_cpu_s": round(cpu_seconds() - cpu, 1),
            "wall_s": round(time.monotonic() - wall, 1),
            "peak_rss_mb": round(peak(resource.RUSAGE_SELF)),
            "peak_rss_of_another_mb": round(peak(resource.RUSAGE_CHILDREN)),
            "page_mb": round(page.stat().st_size / 1e6, 2),
        }
    for name, value in figures.items():
        print(f"{name:16} {value}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
