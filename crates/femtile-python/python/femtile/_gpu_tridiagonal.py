"""Batches of tridiagonal systems in the memory of a GPU."""

from __future__ import annotations

import math
from typing import Any

from . import _femtile
from ._errors import ArgumentError, ArgumentTypeError
from ._gpu import View, gpu_number, like, require_contiguous, require_writable, streams, view

#: The number of failed systems, and line and row of the first.
Failure = tuple[int, int, int]


def solve(
    arrays: dict[str, Any], axis: int, out: Any, flags: tuple[bool, bool]
) -> tuple[Any, Failure | None, tuple[tuple[int, ...], bool]]:
    """Solve systems whose arrays `a`, `b`, `c` and `d` lie on one GPU.

    Returns the solution, where it failed, and the shape of `d` with its order.
    """
    given = {**arrays, **({} if out is None else {"out": out})}
    gpu = gpu_number("d", arrays["d"])
    for name, value in given.items():
        number = gpu_number(name, value)
        if number != gpu:
            raise ArgumentError(f"{name}: lies on GPU {number}, d on GPU {gpu}; move it there", name)
    stream = _femtile.gpu_stream(gpu)
    views = {name: view(name, value, gpu, stream) for name, value in given.items()}
    d = views["d"]
    if d.size == 0:
        raise ArgumentError(f"d: is empty (shape {d.shape})", "d")
    require_contiguous(d, d.is_c or d.is_fortran)
    if not -len(d.shape) <= axis < len(d.shape):
        raise ArgumentError(f"axis: there is no axis {axis} in {len(d.shape)} dimensions", "axis")
    axis %= len(d.shape)
    is_shared = _check_bands([views[name] for name in "abc"], d, axis)
    is_in_place = _check_out(views, out)
    before, after = math.prod(d.shape[:axis]), math.prod(d.shape[axis + 1 :])
    outer, inner = (before, after) if d.is_c else (after, before)
    bands = (views["a"].address, views["b"].address, views["c"].address)
    target = None if out is None else views["out"].address
    addresses = (bands, None if is_in_place else d.address, target, d.dtype.itemsize == 4)
    batch = ((outer, d.shape[axis], inner), is_shared, *flags)
    layout = (list(d.shape), list(d.strides))
    made, failure = _femtile.solve_tridiagonal_on_gpu(gpu, addresses, layout, batch, streams(list(views.values())))
    return (like(arrays["d"], made) if out is None else out), failure, (d.shape, d.is_c)


def _check_bands(bands: list[View], d: View, axis: int) -> bool:
    """Check the bands; return whether all systems share them."""
    for band in bands:
        if band.dtype != d.dtype:
            raise ArgumentTypeError(f"{band.name}: has dtype {band.dtype}, but d has {d.dtype}", band.name)
    vector = (d.shape[axis],)
    is_shared = len(d.shape) > 1 and all(band.shape == vector for band in bands)
    for band in bands:
        if is_shared:
            require_contiguous(band, band.is_c)
        elif band.shape != d.shape:
            message = f"{band.name}: has shape {band.shape}; on a GPU all bands have the shape {d.shape} of d, or all {vector}"
            raise ArgumentError(message, band.name)
        else:
            require_contiguous(band, band.is_c if d.is_c else band.is_fortran, "in the order of d")
    return is_shared


def _check_out(views: dict[str, View], out: Any) -> bool:
    """Check the array for the solution; return whether it is that of the right sides."""
    d = views["d"]
    if out is None:
        return False
    target = views["out"]
    if target.dtype != d.dtype:
        raise ArgumentTypeError(f"out: has dtype {target.dtype}, but d has {d.dtype}", "out")
    if target.shape != d.shape:
        raise ArgumentError(f"out: has shape {target.shape}, but d has {d.shape}", "out")
    require_contiguous(target, target.is_c if d.is_c else target.is_fortran, "in the order of d")
    require_writable("out", out, target)
    for name in ("a", "b", "c"):
        if views[name].overlaps(target):
            raise ArgumentError(f"out: shares memory with {name}, which the solve reads; copy {name}", "out")
    is_in_place = target.address == d.address
    if not is_in_place and target.overlaps(d):
        raise ArgumentError("out: overlaps d in part; give d itself or an array apart", "out")
    return is_in_place
