"""A policy server that belongs to no run: what ``robotrials serve`` starts."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.errors import ConfigError, WireError
from robotrials.plan.config import PolicyChoice
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies import registry as policies
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.own_generators import own_generators
from robotrials.serving.server import PolicyServer
from robotrials.wire.stream import address_of, is_loopback, listen
from robotrials.wire.token import POLICY_TOKEN_VARIABLE, find_or_make_token, require_token

DEFAULT_ADDRESS = "tcp://127.0.0.1:5751"


class Counting(Policy):
    """A policy that counts what it does."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.requests, self.passes, self.busy_s = 0, 0, 0.0

    def spec(self) -> PolicySpec:
        return self._policy.spec()

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        return self._policy.new_session(episode, task, env)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        began = time.perf_counter()
        try:
            return self._policy.act(sessions, observations)
        finally:
            self.requests += len(sessions)
            self.passes += 1
            self.busy_s += time.perf_counter() - began


class _Server(Protocol):
    @property
    def n_clients(self) -> int: ...

    @property
    def n_sessions(self) -> int: ...

    def serve(self, goes_on: Callable[[], bool]) -> None: ...


class Standalone:
    """Loads the policy, binds the address, serves."""

    def __init__(
        self,
        choice: PolicyChoice,
        address: str = "",
        protocol: str = "robotrials",
        token_file: str | None = None,
        exact: bool = True,
        keys: Mapping[str, Any] | None = None,
    ) -> None:
        """
        Raises:
            ConfigError: the policy cannot be loaded or served, the address cannot be bound, or it needs a token.
        """
        given = address or DEFAULT_ADDRESS
        address = _checked(given)
        token = find_or_make_token(token_file)
        if not is_loopback(address):
            require_token(token, given)
        self._path: Path | None = None
        # Bound before the model is loaded: an address in use is then told at once, not after minutes.
        self._listener = self._bind(address)
        try:
            policies.validate(choice)
            about: dict[str, Any] = {
                "type": policies.type_of(choice),
                "revision": policies.revision(choice),
                "options": {name: str(value) for name, value in sorted(choice.options.items())},
                "exact": exact,
            }
            policy = policies.make_policy(policies.told_exactness(choice, exact))
            spec = policy.spec()
            if spec.needs_env:
                raise ConfigError(f"policy {spec.name} looks into the simulator, so it cannot be served")
        except BaseException:
            self.close()
            raise
        about |= policy.describe()
        self.name = spec.name
        self._counting = Counting(own_generators(policy) if exact else policy)
        shown = address_of(self._listener)
        self._server: _Server
        if protocol == "openpi":
            from robotrials.serving.openpi_server import OpenpiServer

            self._server = OpenpiServer(self._counting, self._listener, token, about, keys or {})
            self.address = shown.replace("tcp://", "ws://")
            self.hint = "clients: openpi's, or robotrials eval --policy.type=openpi --policy.url=" + self.address
        else:
            self._server = PolicyServer(self._counting, self._listener, token, about)
            self.address = shown
            self.hint = f"use it: robotrials eval --policy.type=remote --policy.url={self.address} ..."
        if token:
            where = f"--policy.token_file={token_file}" if token_file else POLICY_TOKEN_VARIABLE
            self.hint += f"\nclients need the token: {where}"

    def serve(self, goes_on: Callable[[], bool]) -> None:
        self._server.serve(goes_on)

    def counts(self) -> dict[str, float]:
        """Clients and sessions now; requests, passes and busy seconds since the start."""
        counting = self._counting
        return {
            "clients": self._server.n_clients,
            "sessions": self._server.n_sessions,
            "requests": counting.requests,
            "passes": counting.passes,
            "busy_s": counting.busy_s,
        }

    def close(self) -> None:
        self._listener.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _bind(self, address: str) -> socket.socket:
        if address.startswith("unix://"):
            self._path = Path(address.removeprefix("unix://"))
            _clear_stale(self._path)
        try:
            listener = listen(address)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"--address={address} cannot be used: {getattr(error, 'strerror', error)}") from None
        if self._path is not None:
            self._path.chmod(0o600)
        return listener


def _checked(address: str) -> str:
    """``address`` as ``listen`` takes it; ``ws://`` is TCP."""
    address = address.replace("ws://", "tcp://", 1) if address.startswith("ws://") else address
    try:
        is_loopback(address)
    except WireError as error:
        raise ConfigError(f"--address={address}: {error}") from None
    return address


def _clear_stale(path: Path) -> None:
    """Remove the socket file of a server that was killed; a living one's stays, and binding fails."""
    if not path.is_socket():
        return
    probe = socket.socket(socket.AF_UNIX)
    try:
        probe.connect(str(path))
    except ConnectionRefusedError:
        with suppress(OSError):
            path.unlink()
    except OSError:
        pass
    finally:
        probe.close()
