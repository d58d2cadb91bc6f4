"""Workers and policy servers on a Ray cluster: Ray finds a place for each, the run remains the one who knows.

Every worker and every server is a process on some node of the cluster, started and watched by an actor beside it,
which holds the CPUs and GPUs for it. The process talks to the coordinator over TCP as any worker elsewhere does; Ray
carries none of it. Ray restarts nothing by itself: the run sees that a worker is gone, with its actor or its node, and
asks for another, which Ray places where there is room. All ends with the run, or with its process.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robotrials.engine.launchers.base import WorkerExit
from robotrials.engine.launchers.local import LocalLauncher
from robotrials.errors import ConfigError
from robotrials.install import install_command
from robotrials.plan.config import RaySettings

_TICK_S = 0.1
_KNOCK_S = 10.0
_LOG_BYTES = 1 << 20
"""Of a worker's log, so much of its end is brought to the run directory."""
_HOST = "{host}"
"""In a process's arguments: the address of the node it is on."""
_FOLDER = "{folder}"
"""In a process's arguments: a folder of its own on that node."""


@dataclass(frozen=True)
class Demand:
    """What a process needs of its node."""

    cpus: float
    gpus: float = 0.0

    def __str__(self) -> str:
        return f"{self.cpus:g} CPU" + (f" and {self.gpus:g} GPU" if self.gpus else "")


@dataclass(frozen=True)
class Process:
    """One to be started on a node: ``python -m module`` with ``arguments``, whose places are filled in there."""

    name: str
    module: str
    address: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    python: str | None


class Supervisor:
    """The actor beside a process. If it is killed, or its node's Ray, the process dies with it by the kernel's hand."""

    def is_placed(self) -> bool:
        """Answers once Ray has found a place."""
        return True

    def run(self, process: Process) -> tuple[int, bytes]:
        """Start the process and wait for its end: its status (a negative one: the signal), and the end of its log."""
        folder = Path(tempfile.mkdtemp(prefix="robotrials-"))
        places = {_HOST: _own_address(), _FOLDER: str(folder)}
        launcher = LocalLauncher(
            process.module,
            process.address,
            folder,
            _merged(os.environ, process.variables),
            process.python,
            lambda name: [_filled(word, places) for word in process.arguments],
        )
        launcher.start(process.name)
        try:
            while not (exits := launcher.exits()):
                time.sleep(_TICK_S)
            log = Path(exits[0].log).read_bytes()
            gone = exits[0]
            return -gone.signal if gone.signal is not None else gone.status or 0, log[-_LOG_BYTES:]
        finally:
            launcher.close(grace_s=0.0)
            shutil.rmtree(folder, ignore_errors=True)


class Cluster:
    """A connection to a Ray cluster, from ``open`` to ``close``."""

    def __init__(self, settings: RaySettings) -> None:
        self.settings = settings
        self.address = "127.0.0.1"
        """This machine, as the cluster's nodes reach it."""

    def open(self) -> str:
        """Connect, or start a cluster on this machine; the words say what there is.

        Raises:
            ConfigError: there is no Ray here, or no cluster there.
        """
        try:
            import ray
        except ImportError:
            raise ConfigError(f"--eval.runtime=ray needs Ray: {install_command('ray')}") from None
        address = self.settings.address
        more: dict[str, Any] = {"runtime_env": dict(self.settings.runtime_env)} if self.settings.runtime_env else {}
        if address is None:
            more |= {"address": "local", "include_dashboard": False}
        else:
            more |= {"address": address}
        require_answer(address)
        # Ray takes SIGTERM for itself; here it ends the run in order.
        with _keeping_signal_handlers():
            try:
                ray.init(log_to_driver=False, logging_level="ERROR", configure_logging=False, **more)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                raise _no_cluster(address, error) from None
        if address is not None:
            self.address = _own_address()
        there = ray.cluster_resources()
        cpus, gpus = there.get("CPU", 0.0), there.get("GPU", 0.0)
        n_nodes = sum(node["Alive"] for node in ray.nodes())
        return f"Ray: {n_nodes} node(s) with {cpus:g} CPUs and {gpus:g} GPUs at present"

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here; actors of the run end at once."""
        import ray

        with _keeping_signal_handlers():
            ray.shutdown()

    def n_workers(self, n_servers: int) -> int:
        """For how many workers there is room beside the servers, at least one."""
        import ray

        cpus = float(ray.cluster_resources().get("CPU", 0.0)) - n_servers * self.server_demand().cpus
        return max(1, math.floor(cpus / max(self.settings.cpus_per_worker, 0.01)))

    def worker_demand(self) -> Demand:
        return Demand(self.settings.cpus_per_worker)

    def server_demand(self) -> Demand:
        """One GPU where the cluster has any and nothing else was said."""
        import ray

        gpus = self.settings.gpus_per_server
        if gpus is None:
            gpus = 1.0 if ray.cluster_resources().get("GPU", 0.0) >= 1.0 else 0.0
        return Demand(1.0, gpus)


@dataclass
class _Placed:
    actor: Any
    placed: Any
    ended: Any
    is_placed: bool = False


class RayLauncher:
    """Starts every process through an actor of its own. See ``launchers.base.Launcher``."""

    def __init__(
        self,
        module: str,
        address: str,
        log_dir: Path,
        demand: Demand,
        variables: Mapping[str, str],
        python: str | None = None,
        arguments: Callable[[str], Sequence[str]] = lambda name: (),
    ) -> None:
        """``variables`` are set for the process over what its node has; ``arguments`` may hold ``{host}``, the
        address of its node, and ``{folder}``, a folder of its own there."""
        import ray

        resources = {"num_cpus": demand.cpus, "num_gpus": demand.gpus}
        self._actors = ray.remote(max_restarts=0, max_task_retries=0, **resources)(Supervisor)
        self._module, self._address, self._log_dir = module, address, log_dir
        self._variables, self._python, self._arguments = dict(variables), python, arguments
        self._running: dict[str, _Placed] = {}

    def start(self, name: str) -> None:
        arguments = tuple(self._arguments(name))
        process = Process(name, self._module, self._address, arguments, self._variables, self._python)
        actor = self._actors.remote()
        self._running[name] = _Placed(actor, actor.is_placed.remote(), actor.run.remote(process))

    def unplaced(self) -> set[str]:
        """Those for which the cluster has no room yet."""
        waiting = [each for each in self._running.values() if not each.is_placed]
        done = _finished([each.placed for each in waiting])
        for each in waiting:
            each.is_placed = each.placed in done
        return {name for name, each in self._running.items() if not each.is_placed}

    def exits(self) -> list[WorkerExit]:
        done = _finished([each.ended for each in self._running.values()])
        ended = [(name, each) for name, each in self._running.items() if each.ended in done]
        return [self._exit(name, each) for name, each in ended]

    def kill(self, name: str) -> None:
        """Its process dies with the actor."""
        import ray

        each = self._running.get(name)
        if each is not None:
            ray.kill(each.actor, no_restart=True)

    def close(self, grace_s: float) -> None:
        deadline = time.monotonic() + grace_s
        while self._running and time.monotonic() < deadline:
            if not self.exits():
                time.sleep(_TICK_S)
        for name in list(self._running):
            self.kill(name)
        self._running.clear()

    def _exit(self, name: str, each: _Placed) -> WorkerExit:
        import ray

        del self._running[name]
        path = self._log_dir / f"{name}.log"
        status, cause = 0, ""
        try:
            status, log = ray.get(each.ended)
        except ray.exceptions.RayActorError as error:
            cause, log = _why(error), b"its log was lost with its node, or is in a temporary folder there\n"
        except ray.exceptions.RayError as error:
            cause, log = "could not be started", str(error).encode()
        with open(path, "ab") as file:
            file.write(log)
        ray.kill(each.actor, no_restart=True)
        tail = log[-2000:].decode(errors="replace")
        if cause:
            return WorkerExit(name=name, log=str(path), tail=tail, cause=cause)
        return WorkerExit.of_process(name, status, str(path), tail)


def require_answer(address: str | None) -> None:
    """Connect to the cluster's head once: Ray itself tries for minutes, without a message, to reach one that is gone.

    Raises:
        ConfigError: nothing listens at ``address``, where that is HOST:PORT.
    """
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=_KNOCK_S).close()
        except OSError as error:
            raise _no_cluster(address, error) from None


def _no_cluster(address: str | None, error: Exception) -> ConfigError:
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return ConfigError(
        f"--ray.address={address}: {said.rstrip('.')}. Give HOST:PORT of a cluster's head, auto for the one on this "
        "machine, or leave it out for a cluster that ends with the run"
    )


def _own_address() -> str:
    """Of the node where this is asked, as the cluster's others know it."""
    import ray

    own = ray.get_runtime_context().get_node_id()
    return next(str(node["NodeManagerAddress"]) for node in ray.nodes() if node["NodeID"] == own)


def _merged(here: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """The node's variables, and over them those of the run; modules are looked for in both's folders."""
    path = [wanted.get("PYTHONPATH", ""), here.get("PYTHONPATH", "")]
    return {**here, **wanted, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def _filled(word: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        word = word.replace(name, value)
    return word


def _finished(references: Sequence[Any]) -> set[Any]:
    import ray

    if not references:
        return set()
    done, _ = ray.wait(list(references), num_returns=len(references), timeout=0, fetch_local=False)
    return set(done)


def _why(error: BaseException) -> str:
    """Of Ray's long text, the line that says it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "node" in line.lower() and ("died" in line or "dead" in line)]
    return f"its actor was lost: {(named or lines or ['no word'])[0]}"[:300]


@contextlib.contextmanager
def _keeping_signal_handlers() -> Any:
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.getsignal(number)
    try:
        yield
    finally:
        for number, handler in before.items():
            with contextlib.suppress(ValueError):  # not the main thread, where handlers cannot be changed either way
                signal.signal(number, handler)
