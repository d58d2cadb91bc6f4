"""A Slurm of one node that tests start, with its own key, ports and folders, and end."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.engine.launchers.docker_service import missing

_NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
_UP_S = 60.0
_CONF = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=5
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=65536 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def slurm_service() -> Iterator[None]:
    """``SLURM_CONF`` is set for a cluster that takes jobs of up to 16 pretended cores."""
    absent = [name for name in _NEEDED if shutil.which(name) is None]
    if absent or os.geteuid() != 0:
        missing(f"no Slurm can be started here ({', '.join(absent) or 'not root'}): scripts/services.sh installs it")
    folder = Path(tempfile.mkdtemp(prefix="rt-slurm-"))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o400)
    folder.chmod(0o755)  # munge insists that others may enter the folder of its socket
    host = socket.gethostname().partition(".")[0]
    conf = folder / "slurm.conf"
    conf.write_text(_CONF.format(host=host, folder=folder, controller=_free_port(), daemon=_free_port()))
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(conf)
    started: list[subprocess.Popen[bytes]] = []
    with open(folder / "log", "ab") as log:

        def start(*words: str) -> None:
            started.append(subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

        try:
            places = [f"--{what}-file={folder}/munge.{what}" for what in ("key", "pid", "log", "seed")]
            start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *places)
            _wait_for((folder / "munge.socket").exists, folder)
            start("slurmctld", "-D", "-f", str(conf))
            start("slurmd", "-D", "-f", str(conf), "-N", host)
            _wait_for(lambda: _said("sinfo", "--noheader", "--format=%T") == "idle", folder)
            yield
        finally:
            _said("scancel", "--user=root")
            for process in reversed(started):
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(15)
                process.kill()
                process.wait()
            if before is None:
                del os.environ["SLURM_CONF"]
            else:
                os.environ["SLURM_CONF"] = before
            shutil.rmtree(folder, ignore_errors=True)


def jobs() -> list[str]:
    """Those that are waiting or running, a line each."""
    return [line for line in _said("squeue", "--noheader", "--array", "--format=%i %T %j").splitlines() if line]


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, timeout=30).stdout.strip()


def _wait_for(condition: object, folder: Path) -> None:
    deadline = time.monotonic() + _UP_S
    while not condition():  # type: ignore[operator]
        logs = "\n".join(path.read_text()[-1500:] for path in folder.glob("*log"))
        assert time.monotonic() < deadline, f"Slurm does not come up: {logs}"
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
