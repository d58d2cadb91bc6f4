"""Random numbers of a batched forward that depend on each row's own seed alone, whatever the other rows.

A sampling policy draws noise for the whole batch at once from torch's global generator, so an episode's noise would
depend on its neighbours. ``RowNoise`` steps in between: while it is entered, every draw whose leading dimension is
a multiple of the number of rows is made block by block, each block from its row's generator. One row alone under
``seeded`` sees the very same numbers, because each block has the shape that the row alone would draw.

This covers the prior noise of diffusion and flow-matching policies, the noise that DDPM adds at every denoising step
(diffusers draws it inside ``scheduler.step``), and the codes that VQ-BeT samples, without knowing any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class UnsplittableDrawError(Exception):
    """Raised when a draw does not divide into rows; the caller then runs rows one by one."""


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Inside, torch's global generators (the CPU's and ``device``'s) start from ``seed``; outside, nothing changed."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


class RowNoise(TorchFunctionMode):  # type: ignore[misc]
    """Context in which draws are made row by row, row i from ``seeds[i]``.

    Raises (from inside):
        UnsplittableDrawError: a draw's leading dimension is not a multiple of the number of rows.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__()
        self._seeds = seeds
        self._generators: dict[torch.device, list[torch.Generator]] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        draw = _DRAWS.get(func)
        if draw is None or kwargs.get("generator") is not None:
            return func(*args, **kwargs)
        return draw(self, func, args, kwargs)

    def generators(self, device: torch.device) -> list[torch.Generator]:
        """One generator per row on ``device``, each at the point its row has reached."""
        if device not in self._generators:
            self._generators[device] = [torch.Generator(device).manual_seed(seed) for seed in self._seeds]
        return self._generators[device]

    def blocks(self, length: int) -> list[slice]:
        """The rows' shares of a leading dimension of ``length``."""
        rows = len(self._seeds)
        if length % rows:
            raise UnsplittableDrawError(f"a draw of {length} rows does not divide among {rows}")
        each = length // rows
        return [slice(i * each, (i + 1) * each) for i in range(rows)]


def _sized(mode: RowNoise, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """``torch.randn`` and its kind: a shape comes in."""
    kwargs = dict(kwargs)
    shape = kwargs.pop("size", args[0] if len(args) == 1 and not isinstance(args[0], int) else args)
    return _draw(mode, func, (), tuple(shape), kwargs)


def _ranged(mode: RowNoise, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """``torch.randint([low,] high, size)``."""
    kwargs = dict(kwargs)
    shape = kwargs.pop("size", None)
    if shape is None:
        args, shape = args[:-1], args[-1]
    bounds = tuple(kwargs.pop(name) for name in ("low", "high") if name in kwargs)
    return _draw(mode, func, (*args, *bounds), tuple(shape), kwargs)


def _like(sized: Callable[..., Any]) -> Callable[..., torch.Tensor]:
    """``torch.randn_like`` and its kind: a tensor comes in whose shape, dtype and device count."""

    def draw(mode: RowNoise, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
        like, *bounds = args if args else (kwargs["input"],)
        given = {key: value for key, value in kwargs.items() if key in ("dtype", "device") and value is not None}
        return _draw(
            mode, sized, tuple(bounds), tuple(like.shape), {"dtype": like.dtype, "device": like.device, **given}
        )

    return draw


def _draw(
    mode: RowNoise, func: Callable[..., Any], bounds: tuple[Any, ...], shape: tuple[int, ...], kwargs: dict[str, Any]
) -> torch.Tensor:
    if not shape:
        raise UnsplittableDrawError("a single number is drawn for the whole batch")
    blocks = mode.blocks(shape[0])
    device = torch.device(kwargs.get("device") or torch.get_default_device())
    kwargs = {**kwargs, "generator": None}
    drawn = []
    for block, generator in zip(blocks, mode.generators(device), strict=True):
        kwargs["generator"] = generator
        drawn.append(func(*bounds, (block.stop - block.start, *shape[1:]), **kwargs))
    return torch.cat(drawn)


def _from_rows(mode: RowNoise, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """``torch.multinomial``, ``torch.bernoulli``, ``torch.normal(mean, std)``: one draw for every row of tensors."""
    first = next(value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor))
    if not first.ndim:
        raise UnsplittableDrawError("a single number is drawn for the whole batch")

    def share(value: Any, block: slice) -> Any:
        is_batch = isinstance(value, torch.Tensor) and value.ndim == first.ndim and len(value) == len(first)
        return value[block] if is_batch else value

    drawn = []
    for block, generator in zip(mode.blocks(len(first)), mode.generators(first.device), strict=True):
        own = {key: share(value, block) for key, value in kwargs.items()}
        drawn.append(func(*(share(value, block) for value in args), **{**own, "generator": generator}))
    return torch.cat(drawn)


def _normal(mode: RowNoise, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """``torch.normal``: of tensors, or of two numbers and a size."""
    if any(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values())):
        return _from_rows(mode, func, args, kwargs)
    kwargs = dict(kwargs)
    shape = kwargs.pop("size", args[2] if len(args) > 2 else None)
    moments = (*args[:2], *(kwargs.pop(name) for name in ("mean", "std") if name in kwargs))
    return _draw(mode, func, moments, tuple(shape), kwargs)


def _in_place(mode: RowNoise, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """``Tensor.normal_`` and its kind, which fill a tensor."""
    tensor, *rest = args
    if not tensor.ndim:
        raise UnsplittableDrawError("a single number is drawn for the whole batch")
    for block, generator in zip(mode.blocks(len(tensor)), mode.generators(tensor.device), strict=True):
        func(tensor[block], *rest, **{**kwargs, "generator": generator})
    return tensor


_DRAWS: dict[Callable[..., Any], Callable[..., torch.Tensor]] = {
    torch.randn: _sized,
    torch.rand: _sized,
    torch.randint: _ranged,
    torch.randn_like: _like(torch.randn),
    torch.rand_like: _like(torch.rand),
    torch.randint_like: _like(torch.randint),
    torch.normal: _normal,
    torch.multinomial: _from_rows,
    torch.bernoulli: _from_rows,
    torch.poisson: _from_rows,
    torch.Tensor.multinomial: _from_rows,
    torch.Tensor.bernoulli: _from_rows,
    torch.Tensor.normal_: _in_place,
    torch.Tensor.uniform_: _in_place,
    torch.Tensor.exponential_: _in_place,
    torch.Tensor.bernoulli_: _in_place,
    torch.Tensor.random_: _in_place,
    torch.Tensor.log_normal_: _in_place,
    torch.Tensor.cauchy_: _in_place,
    torch.Tensor.geometric_: _in_place,
}
