"""The worker process, started as ``python -m robotrials.worker.process --connect ADDRESS --name NAME``.

The run's token comes in the environment variable ROBOTRIALS_TOKEN. The process imports the benchmark's simulator and
the policy's module, and little else. With ``--scenes=N`` it is N workers, each in a thread, whose simulator steps their
scenes together.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence

import zmq

from robotrials.control.heartbeat import TOKEN_VARIABLE, live_with
from robotrials.control.messages import scene_names
from robotrials.rendering.gl import gl_environment
from robotrials.worker import worker
from robotrials.worker.many_scenes import SceneHost, SceneSlot
from robotrials.worker.worker import Worker


def _leave(workers: Sequence[Worker]) -> None:
    for each in workers:
        each.leave()


def _to_the_end(member: Worker) -> Callable[[SceneSlot], None]:
    """The worker as one of several: if it fails, its process ends, as that of one alone does."""

    def run(place: SceneSlot) -> None:
        try:
            member.run(place)
        except BaseException:  # noqa: BLE001  whatever it is, it is told and ends the process
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m robotrials.worker.process")
    parser.add_argument("--connect", required=True, help="the coordinator's address")
    parser.add_argument("--name", required=True, help="this worker's name")
    parser.add_argument("--joins", action="store_true", help="nobody expects this worker; SIGTERM: leave in order")
    parser.add_argument("--apart", action="store_true", help="in a container, or on another machine")
    parser.add_argument("--scenes", type=int, default=1, help="workers in this process, of one simulator")
    parser.add_argument("--parent", type=int, default=0, help="process id to live and die with")
    parser.add_argument("--nice", type=int, default=0, help="how much to give way to others on these cores")
    parser.add_argument("--preload", default="", help="comma list of modules to import while the policy loads")
    arguments = parser.parse_args()
    if arguments.parent:
        live_with(arguments.parent)
    if arguments.nice and hasattr(os, "nice"):
        os.nice(arguments.nice)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's to handle.
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING, stream=sys.stderr)
    worker.log.setLevel(logging.INFO)  # its own lines, not those of every library
    token = os.environ.pop(TOKEN_VARIABLE, "")
    if arguments.apart or arguments.joins:
        os.environ.update(gl_environment(os.environ))  # before the simulator is imported
    for module in filter(None, arguments.preload.split(",")):
        importlib.import_module(module)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    names = scene_names(arguments.name, arguments.scenes)
    workers = [
        Worker(arguments.connect, name, token, arguments.joins, arguments.apart, arguments.name, context)
        for name in names
    ]
    if arguments.joins:
        signal.signal(signal.SIGTERM, lambda number, frame: _leave(workers))
    if len(workers) == 1:
        workers[0].run()
    else:
        SceneHost(len(workers)).run([_to_the_end(each) for each in workers])
    sys.stderr.flush()
    # Environments are closed; what the interpreter would tear down now is only libraries' globals, whose order of
    # destruction is where EGL and OSMesa print their tracebacks.
    os._exit(0)


if __name__ == "__main__":
    main()
