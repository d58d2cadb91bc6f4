"""``robotrials`` with a worker that joined given up after two seconds of silence instead of a minute."""

from __future__ import annotations

import sys

from robotrials.cli.main import main
from robotrials.engine.worker_table import WorkerTable

if __name__ == "__main__":
    WorkerTable.LOST_AFTER_S = 2.0
    sys.exit(main())
