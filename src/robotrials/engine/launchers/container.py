"""Workers in containers: docker, podman or apptainer, by one code path.

A container gets no network, a read-only root, no capabilities and no root user. What it sees of this machine is the
folder with the coordinator's and the policy servers' sockets; videos come back over these. It may be killed at any
time like a process, and ends by itself when its coordinator is silent.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from robotrials.control.heartbeat import TOKEN_VARIABLE
from robotrials.engine.launchers.base import WorkerExit
from robotrials.engine.launchers.local import LocalLauncher
from robotrials.errors import ConfigError
from robotrials.machine.memory import available_memory
from robotrials.plan.config import ContainerSettings
from robotrials.version import PACKAGE

ENGINES = ("docker", "podman", "apptainer")
_NOBODY = 65534
"""The user in a container whose coordinator is root: it must not be root there."""
_CODE = "/opt/robotrials"
_HELP = ("Run '", "See '", "Usage:")
_KILLED = 128 + signal.SIGKILL
_NO_ROOM = 128 + signal.SIGBUS
"""Exit statuses of the engine's command for a container whose process a signal has killed."""
_ENGINE_S = 600
"""An image may have to be pulled."""


def user_in_container() -> tuple[int, int]:
    """User and group id of a container's processes: the person's own, or nobody's for root."""
    return (_NOBODY, _NOBODY) if os.getuid() == 0 else (os.getuid(), os.getgid())


class Container:
    """How one engine runs a command in an image."""

    def __init__(self, engine: str, settings: ContainerSettings, benchmark: str, n_workers: int = 1) -> None:
        """
        Raises:
            ConfigError: the engine is not installed.
        """
        if shutil.which(engine) is None:
            raise ConfigError(f"--eval.runtime={engine}: there is no {engine} on this machine's path")
        self.engine = engine
        suffix = ".sif" if engine == "apptainer" else ""  # a file here, where the others have names
        self.image = settings.image or f"robotrials-{benchmark.replace('_', '-')}{suffix}"
        self._settings = settings
        # What apptainer cannot limit on most machines (it needs systemd for it) is asked for only if somebody says so.
        self._memory = settings.memory or (None if engine == "apptainer" else _share_of_memory(n_workers))

    def command(
        self, arguments: Sequence[str], variables: Mapping[str, str], folder: str | None = None, name: str = ""
    ) -> list[str]:
        """The words that run ``python <arguments>`` in the image. ``variables`` are set by value; a token is passed on
        by name (see ``secretly``), since a command line can be read by everybody. ``folder`` is mounted at the same
        path. A container with a ``name`` is a worker's: it runs the image that was asked before, and fetches none."""
        # This package alone: what lies beside it may be a whole environment, of another Python.
        here = str(PACKAGE)
        code = [(here, f"{_CODE}/robotrials")] if self._settings.use_local_code else []
        variables = {**variables, **({"PYTHONPATH": _CODE} if code else {})}
        build = self._apptainer if self.engine == "apptainer" else self._docker
        return [*build(variables, code, folder, name), self._settings.python, *arguments]

    def _docker(
        self, variables: Mapping[str, str], code: Sequence[tuple[str, str]], folder: str | None, name: str
    ) -> list[str]:
        uid, gid = user_in_container()
        pull = "never" if name else self._settings.pull
        words = [self.engine, "run", "--rm", f"--pull={pull}", "--network=none"]
        words += ["--init"] if self.engine == "docker" else []  # podman's is a package of its own, often not there
        words += ["--read-only", f"--tmpfs=/tmp:rw,exec,size={self._settings.shm_size}", f"--user={uid}:{gid}"]
        words += ["--cap-drop=ALL", "--security-opt=no-new-privileges", f"--shm-size={self._settings.shm_size}"]
        words += [f"--cpus={self._settings.cpus:g}", "--pids-limit=512"]
        words += [f"--memory={self._memory}", f"--memory-swap={self._memory}"] if self._memory else []
        if self.engine == "podman" and os.getuid() != 0:
            # Without root, a user's own id is root's in the container, and every other is a stranger outside.
            words += ["--userns=keep-id"]
        words += [f"--name={name}", f"--label=robotrials={name.rpartition('-')[0]}"] if name else []
        words += [f"--gpus={self._settings.gpus}"] if self._settings.gpus != "none" else []
        words += [f"--volume={here}:{there}:ro" for here, there in code]
        words += [f"--volume={folder}:{folder}"] if folder else []
        words += [f"--env={key}={value}" for key, value in variables.items()]
        return [*words, "--env=HOME=/tmp", f"--env={TOKEN_VARIABLE}", "--entrypoint=", self.image]

    def _apptainer(
        self, variables: Mapping[str, str], code: Sequence[tuple[str, str]], folder: str | None, name: str
    ) -> list[str]:
        words = ["apptainer", "exec", "--containall", "--no-home", "--pwd=/tmp", "--net", "--network=none"]
        if os.getuid() == 0:  # else it is the person's own user inside, without capabilities
            uid, gid = user_in_container()
            words += [f"--security=uid:{uid},gid:{gid}"]
        words += [f"--memory={self._memory}"] if self._memory else []
        words += [f"--cpus={self._settings.cpus:g}"] if self._settings.cpus != 1 else []
        words += ["--nv"] if self._settings.gpus != "none" else []
        words += [f"--bind={here}:{there}:ro" for here, there in code]
        words += [f"--bind={folder}"] if folder else []
        words += [f"--env={key}={value}" for key, value in variables.items()]
        return [*words, self.image, "env", "HOME=/tmp"]  # --env=HOME is not permitted

    def ask(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run ``python <arguments>`` in the image, to its end.

        Raises:
            ConfigError: the engine cannot run the image; the message holds what it said.
        """
        try:
            done = subprocess.run(
                self.command(arguments, {}), capture_output=True, text=True, timeout=_ENGINE_S, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"--eval.runtime={self.engine}: {error}") from None
        if done.returncode == _KILLED:
            raise ConfigError(f"--eval.runtime={self.engine}: in the image {self.image}, {self.cause_of(_KILLED)}")
        if done.returncode in (125, 126, 127) or (self.engine == "apptainer" and done.returncode == 255):
            said = _complaint(done.stderr or done.stdout)
            raise ConfigError(
                f"--eval.runtime={self.engine} cannot run {self._settings.python} in the image {self.image}: {said}. "
                f"{self._remedy(said)}"
            )
        return done

    def _remedy(self, said: str) -> str:
        if "annot connect" in said or "permission denied while" in said:
            return f"Is its service on, and may you use it? DOCKER_HOST says where {self.engine} looks for it"
        if "gpu" in said or "nvidia" in said.lower():
            return "--docker.gpus=none runs without a GPU"
        python = self._settings.python
        if "executable file not found" in said or f"exec {python} failed" in said or f"'{python}': No such" in said:
            return "--docker.python=PATH names the interpreter in the image"
        for flag in ("cpus", "memory", "shm_size"):
            if f"--{flag.replace('_', '-')}" in said or flag.partition("_")[0] in said.lower():
                return f"--docker.{flag} says otherwise"
        if "cgroups" in said:
            return "--docker.memory and --docker.cpus need an apptainer that may set limits; it runs without them"
        if self.engine == "apptainer":
            return "--docker.image=NAME names another image: a .sif file, an unpacked folder, or docker://NAME"
        return "--docker.image=NAME names another image; it must be on this machine or in a registry"

    def secretly(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The engine's own variables, such that the run's token reaches the container."""
        if self.engine != "apptainer":
            return dict(environment)
        return {**environment, f"APPTAINERENV_{TOKEN_VARIABLE}": environment.get(TOKEN_VARIABLE, "")}

    def cause_of(self, status: int | None) -> str:
        """What this exit status of the engine's command says of the worker in the container; empty: nothing more."""
        if status == _NO_ROOM:
            size = self._settings.shm_size
            return f"its container was killed by SIGBUS: most likely its /dev/shm of {size} is full (--docker.shm_size)"
        if status != _KILLED:
            return ""
        limit = f"; it may hold {self._memory} of memory (--docker.memory)" if self._memory else ""
        return f"its container was killed{limit}"

    def kill(self, name: str) -> None:
        """End the container of that name, if there is one. apptainer's are plain children, killed as such."""
        if self.engine != "apptainer":
            self._tell("kill", name)

    def remove_left_over(self, run: str) -> None:
        """Remove containers of an earlier session of ``run`` whose coordinator was killed."""
        if self.engine == "apptainer":
            return
        listed = self._tell("ps", "--all", "--quiet", f"--filter=label=robotrials={run}")
        for container in listed.split():
            self._tell("rm", "--force", container)

    def _tell(self, *words: str) -> str:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            return subprocess.run([self.engine, *words], capture_output=True, text=True, timeout=60).stdout
        return ""


class ContainerLauncher(LocalLauncher):
    """Starts every worker in a container of its own."""

    def __init__(
        self,
        container: Container,
        address: str,
        sockets: str,
        log_dir: Path,
        environment: Mapping[str, str],
        variables: Callable[[str], Mapping[str, str]],
        arguments: Callable[[str], Sequence[str]] = lambda name: (),
    ) -> None:
        """``sockets`` is the folder that containers share with this machine; ``environment`` is the engine's, with the
        token; ``variables`` are those set in a worker's container, by its name."""
        environment = container.secretly(environment)
        super().__init__("robotrials.worker.process", address, log_dir, environment, None, arguments)
        self._container = container
        self._sockets = sockets
        self._values = variables
        self._run = f"robotrials-{hashlib.sha256(str(log_dir).encode()).hexdigest()[:12]}"
        container.remove_left_over(self._run)

    def exits(self) -> list[WorkerExit]:
        return [replace(gone, cause=self._container.cause_of(gone.status)) for gone in super().exits()]

    def kill(self, name: str) -> None:
        self._container.kill(f"{self._run}-{name}")
        super().kill(name)

    def close(self, grace_s: float) -> None:
        super().close(grace_s)
        self._container.remove_left_over(self._run)

    def _command(self, name: str) -> list[str]:
        words = ["-m", self._module, f"--connect={self._address}", f"--name={name}", "--apart", *self._arguments(name)]
        return self._container.command(words, self._values(name), self._sockets, f"{self._run}-{name}")


def _share_of_memory(n_workers: int) -> str | None:
    left = available_memory()
    return None if left == float("inf") else f"{int(left / max(n_workers, 1) / 2**20)}m"


def _complaint(text: str) -> str:
    """The line that says what is wrong: docker ends with others about its help."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(_HELP)]
    named = [line for line in lines if "rror" in line or line.startswith((*ENGINES, "FATAL"))]
    return (named or lines or ["no word"])[-1].rstrip(".")
