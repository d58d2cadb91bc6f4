"""What a worker and a policy server say to each other, over one stream a worker.

    worker                         server
      Attach  -------------------->            the run's token
              <--------------------  Attached  what the policy needs
      Open    -------------------->            an episode begins
      Share   -------------------->            where observations of this layout will lie (with a descriptor, or inline)
      Act     -------------------->            an observation is there: next chunk, please
              <--------------------  Chunk     the actions in the body
      Close   -------------------->            the episode is over
              <--------------------  Trouble   in place of Attached or Chunk: what went wrong

Every Act has a number of its own, and the reply bears it: any other reply is an error, never an action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.task import TaskSpec
from robotrials.policies.base import PolicySpec
from robotrials.wire.arrays import ArrayLayout
from robotrials.wire.envelope import Message, Vocabulary


@dataclass(frozen=True)
class Attach(Message):
    kind: ClassVar[str] = "attach"
    client: str
    token: str


@dataclass(frozen=True)
class Attached(Message):
    """``about`` is what the server tells of its policy, for run.json: its revision among it."""

    kind: ClassVar[str] = "attached"
    policy: PolicySpec
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Open(Message):
    kind: ClassVar[str] = "open"
    session: int
    episode: EpisodeSpec
    task: TaskSpec


@dataclass(frozen=True)
class Share(Message):
    """From now on every Act's arrays have this layout. ``shared``: they lie in the memory whose descriptor came along;
    otherwise in the body of each Act."""

    kind: ClassVar[str] = "share"
    layout: ArrayLayout
    shared: bool


@dataclass(frozen=True)
class Act(Message):
    """``texts`` are the observation's entries that are text (``task``)."""

    kind: ClassVar[str] = "act"
    request: int
    session: int
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Chunk(Message):
    """The reply to the Act of that number; its body holds the actions (T, A). ``infer_s`` is the forward pass, ``rows``
    how many it served."""

    kind: ClassVar[str] = "chunk"
    request: int
    session: int
    dtype: str
    shape: tuple[int, ...]
    infer_s: float
    rows: int


@dataclass(frozen=True)
class Close(Message):
    kind: ClassVar[str] = "close"
    session: int


@dataclass(frozen=True)
class Trouble(Message):
    """``contract``: policy and observation do not fit, so that trying again cannot help."""

    kind: ClassVar[str] = "trouble"
    request: int
    reason: str
    contract: bool


SERVER_TALK = Vocabulary(Attach, Attached, Open, Share, Act, Chunk, Close, Trouble)
