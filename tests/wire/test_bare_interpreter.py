"""What a worker imports, and what it does not: start-up is paid by every worker of every run."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "lerobot", "scipy", "pandas", "yaml", "rich", "av", "onnxruntime", "sqlite3", "importlib.metadata")


def imported_by(*modules: str) -> set[str]:
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("module", ["robotrials.worker.process", "robotrials.serving.process"])
def test_worker_and_server_import_nothing_heavy(module: str) -> None:
    assert imported_by(module).isdisjoint(HEAVY)


def test_wire_and_plan_need_numpy_msgpack_and_pyzmq_alone() -> None:
    code = (
        "import sys\n"
        "allowed = {'robotrials', 'numpy', 'msgpack', 'zmq'} | set(sys.stdlib_module_names)\n"
        "class Gate:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] not in allowed and not name.startswith(('_', 'cython')):\n"
        "            raise ImportError('not on a bare interpreter: ' + name)\n"
        "sys.meta_path.insert(0, Gate())\n"
        "import robotrials.wire.transport, robotrials.wire.stream, robotrials.wire.shared\n"
        "import robotrials.plan.plan, robotrials.plan.options, robotrials.worker.worker\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
