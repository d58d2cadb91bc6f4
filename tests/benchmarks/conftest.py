"""The simulators run as a worker runs them: off screen, on one thread."""

from __future__ import annotations

import os

from robotrials.rendering.gl import gl_environment

# Before any test module imports MuJoCo, which reads these as it is imported.
os.environ.update(gl_environment(os.environ))
for variable in ("OMP_NUM_THREADS", "LP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
