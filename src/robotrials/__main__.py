"""``python -m robotrials``: the same as the command ``robotrials``."""

from __future__ import annotations

import sys

from robotrials.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
