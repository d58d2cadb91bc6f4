"""The policy server's loop: one thread that reads what has come, runs one forward pass, and answers.

While a pass runs, requests queue up in the sockets; when it ends all of them are read and make the next batch.
"""

from __future__ import annotations

import hmac
import logging
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robotrials.benchmarks.base import Observation
from robotrials.errors import ContractError, RobotrialsError, WireError
from robotrials.policies.base import Policy, Session
from robotrials.serving.batcher import Answer, Batcher, Request
from robotrials.serving.messages import SERVER_TALK, Act, Attach, Attached, Chunk, Close, Open, Share, Trouble
from robotrials.wire.arrays import Layout
from robotrials.wire.envelope import encode
from robotrials.wire.shared import SharedBytes
from robotrials.wire.stream import ConnectionLostError, Frame, Stream, give_way

log = logging.getLogger(__name__)

_MAX_SESSIONS_A_CLIENT = 1024
_SPIN_S = 200e-6
_STRANGER_BYTES = 64 * 1024
_STRANGER_S, _CLIENT_S = 2.0, 30.0
"""How long a peer may stop in the middle of a message, before and after it has shown the token."""


@dataclass
class _Client:
    """One worker's connection and what it has told."""

    number: int
    stream: Stream
    name: str = ""
    layout: Layout | None = None
    memory: SharedBytes | None = None
    sessions: dict[int, Session] = field(default_factory=dict)
    failed: dict[int, tuple[str, bool]] = field(default_factory=dict)
    """Sessions that the policy could not begin: why, and whether trying again cannot help."""

    def receive(self) -> Frame:
        """The next message. A peer that has not shown the token gets to send one small one; a body is as long as the
        observation that it declared, and memory is taken for no more."""
        if not self.name:
            return self.stream.receive(max_header=_STRANGER_BYTES, max_body=0)
        inline = self.layout is not None and self.memory is None
        return self.stream.receive(max_body=self.layout.n_bytes if inline and self.layout else 0)


class PolicyServer:
    """Serves one policy to the workers that connect to ``listener`` and know ``token``."""

    def __init__(
        self,
        policy: Policy,
        listener: socket.socket,
        token: str,
        about: Mapping[str, Any] | None = None,
        cores: int | None = None,
    ) -> None:
        """``about`` is told to every client, beside the policy's spec. ``cores``: see ``Batcher``."""
        self._policy = policy
        self._about = dict(about or {})
        self._spec = policy.spec()
        self._token = token
        self._batcher = Batcher(policy, self._spec.max_batch, cores)
        self._selector = selectors.DefaultSelector()
        self._clients: dict[int, _Client] = {}
        self._next = 1
        self.listen_at(listener)

    def listen_at(self, listener: socket.socket) -> None:
        """Take clients from this socket too."""
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, listener)

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """For ever, or until ``goes_on`` says no; it is asked about once a second, and before each pass."""
        while goes_on():
            self._read(1.0)
            while len(self._batcher) and goes_on():
                patience = self._batcher.patience()
                if patience > 0.0:
                    self._read(patience)
                    continue
                for answer in self._batcher.run():
                    self._answer(answer)
                self._read(0.0)
        for client in list(self._clients.values()):
            self._drop(client)
        self._selector.close()

    @property
    def n_clients(self) -> int:
        return sum(bool(client.name) for client in self._clients.values())

    @property
    def n_sessions(self) -> int:
        return sum(len(client.sessions) for client in self._clients.values())

    def _read(self, timeout_s: float) -> None:
        """Take in all that has come; wait for it up to ``timeout_s`` if nothing has."""
        events = self._selector.select(0.0 if self._batcher.is_fast else timeout_s)
        if not events and self._batcher.is_fast:
            # The next request is expected sooner than this process could be woken from sleep.
            deadline = time.perf_counter() + min(_SPIN_S, timeout_s)
            while not events and time.perf_counter() < deadline:
                give_way()
                events = self._selector.select(0.0)
            events = events or self._selector.select(timeout_s)
        for key, _ in events:
            if isinstance(key.data, socket.socket):
                self._accept(key.data)
            else:
                self._take(key.data)

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        client = _Client(self._next, Stream(connection))
        client.stream.set_timeout(_STRANGER_S)  # a peer that stops in the middle of a message must not stop everybody
        self._next += 1
        self._clients[client.number] = client
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _take(self, client: _Client) -> None:
        """What one client has sent; whatever is wrong with it costs that client its connection, nobody else's."""
        try:
            self._handle(client, client.receive())
            while client.stream.has_more:
                self._handle(client, client.receive())
        except ConnectionLostError:
            self._drop(client)
        except WireError as error:
            log.warning("client %s sent what is no message: %s", client.name or client.number, error)
            self._drop(client)

    def _handle(self, client: _Client, frame: Frame) -> None:
        message = SERVER_TALK.decode(frame.header)
        if isinstance(message, Attach):
            self._attach(client, message)
        elif not client.name:
            raise WireError(f"{message.kind} before attach")
        elif isinstance(message, Act):
            self._enqueue(client, message, frame)
        elif isinstance(message, Open):
            if len(client.sessions) + len(client.failed) >= _MAX_SESSIONS_A_CLIENT:
                raise WireError(f"more than {_MAX_SESSIONS_A_CLIENT} open sessions")
            self._open(client, message)
        elif isinstance(message, Close):
            client.sessions.pop(message.session, None)
            client.failed.pop(message.session, None)
            self._batcher.drop_session(client.number, message.session)
        elif isinstance(message, Share):
            self._share(client, message)
        else:
            raise WireError(f"{message.kind} is not for a server")

    def _attach(self, client: _Client, message: Attach) -> None:
        if not hmac.compare_digest(message.token.encode(), self._token.encode()):
            client.stream.send(encode(Trouble(0, "the token is not the one this server wants", contract=False)))
            raise WireError("a wrong token")
        client.name = message.client or f"client {client.number}"
        client.stream.set_timeout(_CLIENT_S)
        client.stream.send(encode(Attached(self._spec, self._about)))

    def _open(self, client: _Client, message: Open) -> None:
        """An episode that the policy cannot begin is told when it asks for actions: opening has no answer."""
        try:
            client.sessions[message.session] = self._policy.new_session(message.episode, message.task)
        except Exception as error:  # noqa: BLE001  of one episode of one client, whatever it is
            client.failed[message.session] = (_reason(error), isinstance(error, ContractError))

    def _share(self, client: _Client, message: Share) -> None:
        if client.memory is not None:
            client.memory.close()
            client.memory = None
        if message.shared:
            descriptor = client.stream.take_descriptor()
            if descriptor is None:
                raise WireError("shared memory without a descriptor")
            client.memory = SharedBytes.attach(descriptor)
        message.layout.check()
        if client.memory is not None and client.memory.size < message.layout.n_bytes:
            raise WireError("the shared memory is smaller than its layout")
        client.layout = message.layout

    def _enqueue(self, client: _Client, act: Act, frame: Frame) -> None:
        session = client.sessions.get(act.session)
        if act.session in client.failed:
            self._trouble(client, act.request, *client.failed[act.session])
            return
        if session is None:
            self._trouble(client, act.request, f"no session {act.session} is open here: was the server restarted?")
            return
        if client.layout is None:
            raise WireError("an observation before its layout")
        # Views into the client's memory: it waits for the answer before it writes there again.
        source = client.memory.bytes if client.memory is not None else memoryview(frame.body)
        observation: Observation = {**client.layout.read(source), **act.texts}
        self._batcher.add(Request(client.number, act.request, act.session, session, observation))

    def _answer(self, answer: Answer) -> None:
        client = self._clients.get(answer.request.client)
        if client is None:
            return
        request = answer.request
        try:
            if answer.actions is None:
                contract = isinstance(answer.error, ContractError)
                self._trouble(client, request.request, _reason(answer.error), contract)
                return
            actions = np.ascontiguousarray(answer.actions)
            chunk = Chunk(
                request.request,
                request.session_number,
                actions.dtype.str,
                actions.shape,
                answer.infer_s,
                answer.rows,
            )
            client.stream.send(encode(chunk), actions.data.cast("B"))
        except ConnectionLostError:
            self._drop(client)

    def _trouble(self, client: _Client, request: int, reason: str, contract: bool = False) -> None:
        log.error("%s", reason)
        client.stream.send(encode(Trouble(request, reason, contract)))

    def _drop(self, client: _Client) -> None:
        if self._clients.pop(client.number, None) is None:
            return
        self._selector.unregister(client.stream)
        self._batcher.drop_client(client.number)
        client.stream.close()
        if client.memory is not None:
            client.memory.close()


def _reason(error: Exception | None) -> str:
    text = str(error).strip()
    if isinstance(error, RobotrialsError):
        return text
    return f"the policy raised {type(error).__name__}: {text}"
