"""The order of calls of an environment, guarded: a step before reset or after close raises instead of playing on in a
scene that nobody set. Stepping itself is not slowed: the guard is a method that stands in until ``reset``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from robotrials.errors import CallOrderError

_GUARDED = ("step", "observe", "render", "expert")
_IN_RESET = "_is_being_reset"

T = TypeVar("T", bound="CallOrder")


class CallOrder:
    """Base of ``Env``: wraps the ``reset`` and ``close`` of each subclass."""

    def __new__(cls: type[T], *args: Any, **kwargs: Any) -> T:
        made = super().__new__(cls)
        _guard(made, "before reset")
        return made

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, wrap in (("reset", _resetting), ("close", _closing)):
            if name in cls.__dict__ and not getattr(cls.__dict__[name], "__isabstractmethod__", False):
                setattr(cls, name, wrap(cls.__dict__[name]))


def _resetting(reset: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(reset)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _IN_RESET in self.__dict__:
            return reset(self, *args, **kwargs)  # that of a base class
        _unguard(self)  # it may look at the scene that it sets, or close the one before
        self.__dict__[_IN_RESET] = True
        try:
            return reset(self, *args, **kwargs)
        except BaseException:
            _guard(self, "after a reset that failed")
            raise
        finally:
            self.__dict__.pop(_IN_RESET, None)

    return guarded


def _closing(close: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(close)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return close(self, *args, **kwargs)
        finally:
            if _IN_RESET not in self.__dict__:
                _guard(self, "after close")

    return guarded


def _guard(env: Any, when: str) -> None:
    """Have these methods raise, for this object alone, until it is reset."""

    def refused(name: str) -> Callable[..., Any]:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise CallOrderError(f"{type(env).__name__}.{name} was called {when}; call reset first")

        return refuse

    for name in _GUARDED:
        env.__dict__[name] = refused(name)


def _unguard(env: Any) -> None:
    for name in _GUARDED:
        env.__dict__.pop(name, None)
