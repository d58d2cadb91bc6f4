"""What a report of 5,000 episodes costs: CPU seconds to build, size, and the time until Chromium shows something.

python bench/report.py [--episodes 5000]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.reporting.browser import chromium
from tests.reporting.runs import make_run

from robotrials.reporting.report import write_report

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=5000)
    n = parser.parse_args().episodes
    tasks = [("many", f"task-{i:02}") for i in range(50)]
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder) / "run", tasks=tasks, n=n // 50, video=b"0" * 1000)
        began = time.process_time()
        made = write_report([run])
        build_cpu_s = time.process_time() - began
        figures = {"episodes": n, "build_cpu_s": build_cpu_s, "page_mb": made.size / 1e6, **opened(made.path)}
    print(f"{n:,} episodes, 50 tasks: built in {build_cpu_s:.2f} CPU s, {made.size / 1e6:.2f} MB")
    print(f"first content after {figures['first_content_ms']:.0f} ms, usable after {figures['usable_ms']:.0f} ms")
    print(json.dumps(figures))


def opened(page_file: Path) -> dict[str, Any]:
    """Milliseconds from navigation, in a browser that is running already; the best of three."""
    with chromium() as browser:
        times = []
        for _ in range(3):
            page = browser.new_page()
            page.goto(page_file.as_uri())
            page.wait_for_function(f"({PAINT}) !== null")
            usable = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
            times.append((page.evaluate(PAINT), usable))
            page.close()
    return {"first_content_ms": min(t[0] for t in times), "usable_ms": min(t[1] for t in times)}


if __name__ == "__main__":
    main()
