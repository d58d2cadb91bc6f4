"""What a policy hands out, checked before it is sent: one array of numbers, a chunk for each session."""

from __future__ import annotations

import numpy as np

from robotrials.errors import ContractError, RobotrialsError
from robotrials.policies.base import Session
from robotrials.policies.checks import plain_array

MAX_CHUNK_BYTES = 16 * 2**20
"""Bytes of one session's chunk of actions."""
_LONGEST_REASON = 8000
"""Characters of an error that are sent; a message has a limit, an exception's text has none."""


def checked_chunks(policy: str, actions: object, n_sessions: int) -> np.ndarray:
    """``actions`` of the policy named ``policy`` as an array (``n_sessions``, T, A) of booleans, integers or floats.

    Types that NumPy does not have by itself (bfloat16, float8) become float32, which holds each of their values.

    Raises:
        ContractError: it is no such array, or a chunk exceeds ``MAX_CHUNK_BYTES``.
    """
    if type(actions) is np.ndarray and _is_right(actions, n_sessions):
        return actions
    right = f"right is an array ({n_sessions}, T, A) of numbers"
    if actions is None or isinstance(actions, (str, bytes, dict, set)):
        raise ContractError(f"policy {policy} returned {_kind(actions)} as actions; {right}")
    try:
        array = plain_array(actions)
    except ValueError:
        raise ContractError(f"policy {policy} returned a ragged list of actions; {right}") from None
    if array.ndim != 3 or len(array) != n_sessions or not array.size:
        raise ContractError(
            f"policy {policy} returned actions of shape {array.shape} for {n_sessions} sessions; {right}"
        )
    if array.dtype.type.__module__ != "numpy":
        array = _as_float32(array)
    if array.dtype.kind not in "biuf":
        raise ContractError(f"policy {policy} returned actions of dtype {array.dtype}; {right}, such as float32")
    if array[0].nbytes > MAX_CHUNK_BYTES:
        raise ContractError(
            f"policy {policy} returned a chunk of {array[0].nbytes:,} bytes (shape {array[0].shape}); "
            f"the limit is {MAX_CHUNK_BYTES:,}"
        )
    return array


def _is_right(array: np.ndarray, n_sessions: int) -> bool:
    """Whether there is nothing to convert or to say, as nearly always."""
    dtype, shape = array.dtype, array.shape
    return (
        dtype.isbuiltin == 1
        and dtype.kind in "fiub"
        and len(shape) == 3
        and shape[0] == n_sessions
        and 0 < array.nbytes <= MAX_CHUNK_BYTES
    )


def checked_session(policy: str, session: object) -> Session:
    """
    Raises:
        ContractError: ``session`` is not a ``Session``.
    """
    if not isinstance(session, Session):
        raise ContractError(f"new_session of policy {policy} returned {_kind(session)}; right is a Session")
    return session


def reason_of(error: BaseException | None) -> str:
    """What a client is told of ``error``: text that can be sent, whatever the exception's own is."""
    try:
        text = str(error).strip()
    except Exception as odd:  # noqa: BLE001  an exception's own code may raise anything
        text = f"(its text cannot be read: {type(odd).__name__})"
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) > _LONGEST_REASON:
        text = text[:_LONGEST_REASON] + "..."
    return text if isinstance(error, RobotrialsError) else f"the policy raised {type(error).__name__}: {text}"


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _as_float32(array: np.ndarray) -> np.ndarray:
    """The numbers of a dtype that an extension of NumPy defines; unchanged if they cannot be converted."""
    try:
        return array.astype(np.float32)
    except (TypeError, ValueError):
        return array
