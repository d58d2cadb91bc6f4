"""A policy object of this process, served to the workers of a run that this process coordinates."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

from robotrials.errors import ConfigError
from robotrials.policies.base import Policy
from robotrials.policies.own_generators import own_generators
from robotrials.serving.server import PolicyServer
from robotrials.wire.stream import listen
from robotrials.wire.transport import new_token

log = logging.getLogger(__name__)


@contextlib.contextmanager
def serve_here(policy: Policy) -> Iterator[dict[str, str]]:
    """Serve ``policy`` from a thread while the block lasts; gives the options of ``--policy.type=remote`` that reach
    it.

    Whoever may read a folder that only this user can enter may ask it. The object has no revision, so each call counts
    as another policy: weights that are being trained are never the same twice.

    Raises:
        ConfigError: the policy looks into the simulator, which is in another process.
    """
    spec = policy.spec()
    if spec.needs_env:
        raise ConfigError(
            f"policy {spec.name} looks into the simulator: give its class or its type, it cannot act here"
        )
    with tempfile.TemporaryDirectory(prefix="robotrials-") as folder:
        os.chmod(folder, 0o700)
        token, address = new_token(), f"unix://{folder}/policy"
        token_file = Path(folder) / "token"
        token_file.touch(0o600)
        token_file.write_text(token)
        about = {"type": type(policy).__name__, "revision": uuid.uuid4().hex, "options": {}}
        server = PolicyServer(own_generators(policy), listen(address), token, about)
        ended = threading.Event()
        thread = threading.Thread(
            target=server.serve, args=(lambda: not ended.is_set(),), name="robotrials-policy", daemon=True
        )
        thread.start()
        try:
            yield {"url": address, "token_file": str(token_file)}
        finally:
            ended.set()
            thread.join()
