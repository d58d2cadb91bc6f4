"""A policy that lives in a server: what a worker plays when the model is in another process."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.errors import ContractError, RobotrialsError, WireError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.chunks import MAX_CHUNK_BYTES
from robotrials.policies.remote.protocol import SERVER_TALK, Act, Attach, Attached, Chunk, Close, Open, Share, Trouble
from robotrials.wire.arrays import AnyArray, ArrayHeader, ArrayLayout
from robotrials.wire.envelope import Message, encode
from robotrials.wire.shared import IS_AVAILABLE, SharedBytes
from robotrials.wire.stream import ConnectionLostError, Stream, connect

_RETRY_EVERY_S = 0.2
_SPIN_S = 200e-6
"""How long to look for the answer of a policy that is this fast before going to sleep."""


class PolicyServerError(Exception):
    """Raised when the policy raised in its server; the episode may be tried again."""


@dataclass
class ServedSession(Session):
    """An episode whose state lives in the server under ``number``."""

    number: int = 0


class ServedPolicy(Policy):
    """Connects at first use, and anew when the server was restarted in between.

    ``infer_s`` is the server's share of the last ``act``; the rest of its time was waiting and transport.
    """

    draws_globally = False

    def __init__(
        self,
        address: str,
        token: str,
        client: str,
        connect_s: float = 600.0,
        moved_to: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``moved_to`` is asked before every attempt to connect; None: where it was."""
        self._address = address
        self._moved_to = moved_to
        self._token = token
        self._client = client
        self._connect_s = connect_s
        self._stream: Stream | None = None
        self._spec: PolicySpec | None = None
        # Not from 1: a reply that strays to another client must not find a request of the same number there.
        self._numbers = itertools.count(random.SystemRandom().randrange(1, 2**48))
        self._layout: ArrayLayout | None = None
        self._memory: SharedBytes | None = None
        self._open: int | None = None
        self.infer_s: float | None = 0.0
        self.about: Mapping[str, Any] = {}
        """What the server told of its policy."""

    def spec(self) -> PolicySpec:
        if self._spec is None:
            self._connected()
        assert self._spec is not None
        return self._spec

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        if self._open is not None:
            self._tell(Close(self._open))
        number = next(self._numbers)
        self._open = number
        self._tell(Open(number, episode, task))
        return ServedSession(episode, task, episode.rng("policy"), env, number)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        """One session at a time: a worker has one scene.

        Raises:
            ConnectionLostError: the server died; it will be another one next time.
            ContractError: the policy cannot use this observation.
            PolicyServerError: the policy raised.
            WireError: the reply belongs to another request.
        """
        (session,), (observation,) = sessions, observations
        assert isinstance(session, ServedSession)
        arrays = {key: value for key, value in observation.items() if isinstance(value, np.ndarray)}
        texts = {key: value for key, value in observation.items() if isinstance(value, str)}
        stream = self._connected()
        try:
            self._share(stream, arrays)
            request = next(self._numbers)
            self._send_act(stream, Act(request, session.number, texts), arrays)
            reply, body = self._receive(stream)
        except (ConnectionLostError, WireError):
            self.close()
            raise
        if isinstance(reply, Trouble) and reply.request == request:
            raise ContractError(reply.reason) if reply.contract else PolicyServerError(reply.reason)
        if not isinstance(reply, Chunk) or (reply.request, reply.session) != (request, session.number):
            self.close()
            raise WireError(f"the policy server answered {reply.kind} of another request than {request}")
        self.infer_s = reply.infer_s
        return self._actions(reply, body)

    def close(self) -> None:
        """Drop the connection; the next use makes a new one."""
        if self._stream is not None:
            self._stream.close()
        if self._memory is not None:
            self._memory.close()
        self._stream, self._memory, self._layout, self._open = None, None, None, None

    def _connected(self) -> Stream:
        if self._stream is not None:
            return self._stream
        deadline = time.monotonic() + self._connect_s
        while True:
            self._address = self._moved_to() or self._address
            try:
                stream = connect(self._address, timeout_s=10.0)
                stream.send(encode(Attach(self._client, self._token)))
                reply = SERVER_TALK.decode(stream.receive(max_body=0).header)
                break
            except ConnectionLostError:
                # A server that is still loading its model, or is being restarted.
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_EVERY_S)
        if isinstance(reply, Trouble):
            stream.close()
            raise RobotrialsError(f"the policy server at {self._address} refused this worker: {reply.reason}")
        if not isinstance(reply, Attached):
            raise WireError(f"the policy server answered {reply.kind} to attach")
        if self._spec is not None and (self._spec, self.about) != (reply.policy, reply.about):
            stream.close()
            raise ContractError(
                f"the policy server at {self._address} was restarted with another policy: it served "
                f"{self._spec.name} {dict(self.about)}, now {reply.policy.name} {dict(reply.about)}"
            )
        self._stream, self._spec, self.about = stream, reply.policy, reply.about
        return stream

    def _tell(self, message: Message) -> None:
        """Say what needs no answer; a lost connection shows at the next request, or is mended here once."""
        try:
            self._connected().send(encode(message))
        except ConnectionLostError:
            self.close()
            if isinstance(message, Open):
                self._connected().send(encode(message))
                self._open = message.session

    def _share(self, stream: Stream, arrays: dict[str, AnyArray]) -> None:
        """Agree on where observations of this layout lie, unless that is settled."""
        if self._layout is not None and self._layout.matches(arrays):
            return
        self._layout = ArrayLayout.of(arrays)
        use_memory = stream.is_local and IS_AVAILABLE
        if not use_memory:
            stream.send(encode(Share(self._layout, shared=False)))
            return
        if self._memory is None or self._memory.size < self._layout.n_bytes:
            if self._memory is not None:
                self._memory.close()
            self._memory = SharedBytes.create(self._layout.n_bytes)
        stream.send(encode(Share(self._layout, shared=True)), descriptor=self._memory.descriptor)

    def _send_act(self, stream: Stream, act: Act, arrays: dict[str, AnyArray]) -> None:
        assert self._layout is not None
        if self._memory is not None:
            self._layout.write(arrays, self._memory.bytes)
            stream.send(encode(act))
            return
        body = memoryview(bytearray(self._layout.n_bytes))
        self._layout.write(arrays, body)
        stream.send(encode(act), body)

    def _receive(self, stream: Stream) -> tuple[Message, bytearray]:
        fast = self.infer_s is not None and self.infer_s < _SPIN_S
        frame = stream.receive(max_body=MAX_CHUNK_BYTES, spin_s=_SPIN_S if fast else 0.0)
        return SERVER_TALK.decode(frame.header), frame.body

    def _actions(self, chunk: Chunk, body: bytearray) -> np.ndarray:
        header = ArrayHeader("action", chunk.dtype, chunk.shape, 0)
        layout = ArrayLayout((header,), len(body))
        layout.check()
        return layout.read(memoryview(body))["action"][None]
