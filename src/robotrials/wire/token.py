"""The secret that a policy server and its clients share: from the environment or a file, never from a command line,
which every user of a machine can read."""

from __future__ import annotations

import os
from pathlib import Path

from robotrials.errors import ConfigError
from robotrials.wire.transport import new_token

POLICY_TOKEN_VARIABLE = "ROBOTRIALS_POLICY_TOKEN"
_SHORTEST = 16


def find_token(file: str | None) -> str:
    """The token in ``file``, else in ROBOTRIALS_POLICY_TOKEN, else an empty one.

    Raises:
        ConfigError: the file cannot be read, or holds none.
    """
    if file is None:
        return os.environ.get(POLICY_TOKEN_VARIABLE, "").strip()
    try:
        token = Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token file {file} cannot be read: {getattr(error, 'strerror', error)}") from None
    if not token:
        raise ConfigError(f"the token file {file} is empty")
    return token


def find_or_make_token(file: str | None) -> str:
    """As ``find_token``; a file that is not there is made, with a new token that only its owner can read."""
    path = None if file is None else Path(file).expanduser()
    if path is not None and not path.exists():
        token = new_token()
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise ConfigError(f"the token file {file} cannot be made: {error.strerror}") from None
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(token + "\n")
    return find_token(file)


def require_token(token: str, address: str) -> None:
    """
    Raises:
        ConfigError: ``address`` can be reached from other machines, and ``token`` is missing or could be guessed.
    """
    if not token:
        raise ConfigError(
            f"--address={address} can be reached from other machines, so it needs a token: --token_file=FILE (made if "
            f"it is not there) or the variable {POLICY_TOKEN_VARIABLE}. Without one, bind 127.0.0.1"
        )
    if len(token) < _SHORTEST:
        raise ConfigError(f"the token has {len(token)} characters; one that cannot be guessed has {_SHORTEST} or more")
