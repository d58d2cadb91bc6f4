"""``--policy.type=remote``: a policy behind ``robotrials serve``, on this machine or another.

Each worker has a connection of its own. When the server is restarted the episodes it was playing are tried again; when
it comes back with another policy, the run stops with an error instead of mixing the two.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from robotrials.errors import ConfigError, RobotrialsError, WireError
from robotrials.plan.config import PolicyChoice
from robotrials.policies.base import PolicySpec
from robotrials.policies.remote.client import ServedPolicy
from robotrials.wire.stream import is_loopback
from robotrials.wire.token import find_token

PLACES = ("url", "token_file", "connect_s")
"""Options that say where the policy is, not which: they are not in a run's identity."""

_LOOK_S = 5.0
"""How long the coordinator waits for the server before anything starts."""


class RemotePolicy(ServedPolicy):
    """What ``robotrials serve`` serves, as a policy of this process."""

    def __init__(self, url: str, token_file: str | None = None, connect_s: float = 60.0) -> None:
        """``url`` is ``tcp://host:port`` or ``unix:///path``. The token comes from ``token_file`` or the variable
        ROBOTRIALS_POLICY_TOKEN. A server that does not answer is waited for, ``connect_s`` seconds.

        Raises:
            ConfigError: ``url`` is no address, or the token file cannot be read.
        """
        try:
            is_loopback(url)
        except WireError as error:
            raise ConfigError(f"--policy.url={url}: {error}") from None
        super().__init__(url, find_token(token_file), f"{socket.gethostname()} {os.getpid()}", connect_s)

    def describe(self) -> dict[str, Any]:
        return {"served": dict(self.about)}


def validate(choice: PolicyChoice) -> None:
    """
    Raises:
        ConfigError: as the constructor.
    """
    if choice.path is not None:
        raise ConfigError("--policy.type=remote takes no --policy.path: the server has the weights")
    RemotePolicy(**_options(choice))


def revision(choice: PolicyChoice) -> str:
    """What the server says that it serves.

    Raises:
        ConfigError: nobody answers, the token is refused, or it is no policy server of this version.
    """
    _, about = _look(choice)
    return f"{about.get('type', 'unknown')} {about.get('revision', 'unknown')}"


def known_spec(choice: PolicyChoice) -> PolicySpec:
    """What the server says that its policy needs.

    Raises:
        ConfigError: as ``revision``.
    """
    return _look(choice)[0]


def _look(choice: PolicyChoice) -> tuple[PolicySpec, Mapping[str, Any]]:
    policy = RemotePolicy(**{**_options(choice), "connect_s": _LOOK_S})
    try:
        return policy.spec(), dict(policy.about)
    except (RobotrialsError, WireError) as error:
        raise ConfigError(f"--policy.url={choice.options.get('url')}: {error}") from None
    finally:
        policy.close()


def _options(choice: PolicyChoice) -> dict[str, Any]:
    options = dict(choice.options)
    return {name: float(value) if name == "connect_s" else value for name, value in options.items()}
