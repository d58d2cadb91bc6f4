"""The policy server as a process of a run: ``python -m robotrials.serving.process --connect --name --listen``.

It asks the coordinator which policy to load, loads it, and serves it to workers until it is killed or orphaned.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket as host_info
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import zmq

from robotrials.benchmarks.base import Env, Observation
from robotrials.control.heartbeat import TOKEN_VARIABLE, Heartbeat, live_with, start_heartbeat
from robotrials.control.messages import WORKER_TALK, Hello, Refused, Serve, Serving
from robotrials.errors import ConfigError, RobotrialsError
from robotrials.machine.threads import available_cores
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import Policy, PolicySpec, Session
from robotrials.policies.own_generators import own_generators
from robotrials.policies.registry import make_policy, told_exactness
from robotrials.serving.server import PolicyServer
from robotrials.wire.stream import listen
from robotrials.wire.transport import connect_dealer, name_for_others, send

log = logging.getLogger("robotrials.serving.process")  # the name, since this module runs as __main__


def serve(address: str, name: str, token: str, where: str, elsewhere: str | None = None) -> None:
    """Until killed: a server has nothing to lose. ``elsewhere`` is the host at which other machines reach it too."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    coordinator = connect_dealer(context, address)
    send(coordinator, Hello(name, os.getpid(), host_info.gethostname(), token))
    message = WORKER_TALK.decode(coordinator.recv())
    if not isinstance(message, Serve):
        return
    heartbeat = Heartbeat(phase="load")
    start_heartbeat(context, address, name, token, heartbeat, message.beat_every)
    try:
        policy = make_policy(told_exactness(message.policy, message.exact))
        spec = policy.spec()
        if spec.needs_env:
            raise ConfigError(f"policy {spec.name} looks into the simulator, so it cannot live in a policy server")
    except RobotrialsError as error:
        _refuse(coordinator, name, str(error), expected=True)
        return
    except Exception as error:  # noqa: BLE001  a policy's constructor may raise anything; the coordinator reports it
        log.error("the policy could not be made\n%s", traceback.format_exc())
        _refuse(coordinator, name, f"{type(error).__name__}: {error}", expected=False)
        return
    if where.startswith("unix://"):
        Path(where.removeprefix("unix://")).unlink(missing_ok=True)  # left by a server that was killed
    listener = listen(where)
    if where.startswith("unix://"):
        # Its folder is private; a worker in a container may be another user, to whom the folder was given.
        Path(where.removeprefix("unix://")).chmod(0o777)
    if message.exact:
        policy = own_generators(policy)
    cores = None if policy.has_own_device else available_cores()
    server = PolicyServer(Beating(policy, heartbeat), listener, token, cores=cores)
    reached_at = None
    if elsewhere is not None:
        for_others = listen(f"tcp://{elsewhere}:0")
        server.listen_at(for_others)
        reached_at = f"tcp://{name_for_others(elsewhere)}:{for_others.getsockname()[1]}"
    send(coordinator, Serving(name, spec, policy.describe(), reached_at))
    heartbeat.enter("idle")
    server.serve()


def _refuse(coordinator: zmq.Socket[bytes], name: str, reason: str, expected: bool) -> None:
    send(coordinator, Refused(name, reason, expected))
    if coordinator.poll(10_000):  # let it be read before this process is gone
        coordinator.recv()


class Beating(Policy):
    """A policy whose every call shows in the pulse: one that hangs is found by the coordinator's watchdog."""

    def __init__(self, policy: Policy, heartbeat: Heartbeat) -> None:
        self._policy, self._heartbeat = policy, heartbeat

    def spec(self) -> PolicySpec:
        return self._policy.spec()

    def new_session(self, episode: EpisodeSpec, task: TaskSpec, env: Env | None = None) -> Session:
        return self._policy.new_session(episode, task, env)

    def act(self, sessions: Sequence[Session], observations: Sequence[Observation]) -> np.ndarray:
        self._heartbeat.enter("infer")
        try:
            return self._policy.act(sessions, observations)
        finally:
            self._heartbeat.enter("idle")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m robotrials.serving.process")
    parser.add_argument("--connect", required=True, help="the coordinator's address")
    parser.add_argument("--name", required=True, help="this server's name")
    parser.add_argument("--listen", required=True, help="where workers reach it: unix:///path or tcp://host:port")
    parser.add_argument("--elsewhere", help="host at which workers on other machines reach it too")
    parser.add_argument("--parent", type=int, default=0, help="process id to live and die with")
    arguments = parser.parse_args()
    if arguments.parent:
        live_with(arguments.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING, stream=sys.stderr)
    log.setLevel(logging.INFO)
    serve(arguments.connect, arguments.name, os.environ.pop(TOKEN_VARIABLE, ""), arguments.listen, arguments.elsewhere)
    sys.stderr.flush()
    os._exit(0)  # nothing is left to save, and tearing down torch and CUDA takes seconds


if __name__ == "__main__":
    main()
