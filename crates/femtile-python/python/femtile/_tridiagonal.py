"""Batches of tridiagonal and block tridiagonal systems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _femtile
from ._arrays import MOST, count, on_host, real, threads_of, warn_of_copy
from ._errors import ArgumentError, ArgumentTypeError, SingularError
from ._gpu import is_on_gpu, like


def solve_tridiagonal(
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    axis: int = -1,
    out: Any = None,
    *,
    periodic: bool = False,
    pivoting: bool = False,
    threads: int = 0,
) -> Any:
    """Solve tridiagonal systems that stand as lines in an array.

    .. math:: a_i u_{i-1} + b_i u_i + c_i u_{i+1} = d_i

    Parameters
    ----------
    a, b, c : array_like
        Lower band, diagonal and upper band: arrays of the shape of `d`, one vector or number each for all systems, or
        others that NumPy broadcasts. Entry 0 of `a` and the last one of `c` are read only with `periodic`.
    d : array_like
        The right sides; contiguous arrays (in the order of C or Fortran) are not copied. The solution is float32 where all
        arrays are, else float64. Where they are arrays of CuPy, PyTorch or JAX on a GPU, that GPU solves, and all other
        arrays lie there too, of the shape and the dtype of `d`.
    axis : int
        The axis along which the systems stand.
    out : array, optional
        The array for the solution, of its shape and dtype and in the order of `d`; may be `d` itself.
    periodic : bool
        Whether the first and the last unknown are neighbours.
    pivoting : bool
        Whether rows are exchanged, for matrices that are not diagonally dominant.
    threads : int
        Threads of the processor; 0 for all.

    Returns
    -------
    array
        The solution, of the kind of `d`, which is `out` where that is given.

    Raises
    ------
    SingularError
        A pivot is zero, lost to rounding or not a number. `out` has NaN along the systems that failed.

    Examples
    --------
    −u″ = 1 on two lines of three points:

    >>> import numpy as np
    >>> import femtile
    >>> femtile.solve_tridiagonal(-np.ones(3), 2 * np.ones(3), -np.ones(3), np.ones((2, 3)))
    array([[1.5, 2. , 1.5],
           [1.5, 2. , 1.5]])
    """
    if is_on_gpu(d):
        from ._gpu_tridiagonal import solve

        on_gpu = {"a": a, "b": b, "c": c, "d": d}
        result, failure, (shape, is_c) = solve(on_gpu, axis, out, (periodic, pivoting))
        if failure is not None:
            raise SingularError(_message(failure, shape, axis % len(shape), is_c, (periodic, pivoting)), "b")
        return result
    threads = threads_of(threads)
    arrays = _numbers({"a": a, "b": b, "c": c, "d": d})
    shape, axis = _shape(arrays, axis)
    right = arrays["d"] if arrays["d"].shape == shape else np.ascontiguousarray(_along(arrays["d"], shape, axis))
    if not (right.flags.c_contiguous or right.flags.f_contiguous):
        warn_of_copy("d")
        right = np.ascontiguousarray(right)
    solution = np.empty_like(right, order="K") if out is None else _output(out, right)
    if right.size == 0:
        return like(d, solution) if out is None else out
    is_c = right.flags.c_contiguous
    bands = {name: arrays[name] for name in ("a", "b", "c")}
    is_shared = right.ndim > 1 and all(band.shape == (shape[axis],) for band in bands.values())
    flat = [_flat(_fitting(name, band, (shape, axis), is_shared, is_c)) for name, band in bands.items()]
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    outer, inner = (before, after) if is_c else (after, before)
    is_in_place = np.shares_memory(solution, right) if out is not None else False
    if is_in_place and solution is not right:
        solution[...] = right
    flat_d = None if is_in_place else _flat(right)
    batch = ((outer, shape[axis], inner), is_shared, periodic, pivoting)
    failure = _femtile.solve_tridiagonal(_apart(flat, solution), flat_d, _flat(solution), batch, threads)
    if failure is not None:
        raise SingularError(_message(failure, shape, axis, is_c, (periodic, pivoting)), "b")
    return like(d, solution) if out is None else out


def solve_block_tridiagonal(
    A: Any,
    B: Any,
    C: Any,
    d: Any,
    out: NDArray[Any] | None = None,
    *,
    pivoting: bool = False,
    threads: int = 0,
) -> NDArray[Any]:
    """Solve block tridiagonal systems with blocks of 2 to 10 rows.

    .. math:: A_i u_{i-1} + B_i u_i + C_i u_{i+1} = d_i

    Parameters
    ----------
    A, B, C : array_like
        Lower blocks, diagonal blocks and upper blocks, of shape ``(..., n, m, m)``, where NumPy broadcasts the axes before
        the last two.
    d : array_like
        The right sides, of shape ``(..., n, m)``.
    out : ndarray, optional
        The array for the solution, contiguous, of the shape and dtype of `d`; may be `d` itself.
    pivoting : bool
        Whether rows are exchanged within a block.
    threads : int
        Threads of the processor; 0 for all.

    Returns
    -------
    ndarray
        The solution, which is `out` where that is given.

    Examples
    --------
    >>> import numpy as np
    >>> import femtile
    >>> eye = np.broadcast_to(np.eye(2), (3, 2, 2))
    >>> femtile.solve_block_tridiagonal(-eye, 2 * eye, -eye, np.ones((3, 2)))[:, 0]
    array([1.5, 2. , 1.5])
    """
    threads = threads_of(threads)
    arrays = _numbers({"A": A, "B": B, "C": C, "d": d})
    right = arrays["d"]
    if right.ndim < 2:
        raise ArgumentError(f"d: has shape {right.shape}; (..., rows, block) is needed", "d")
    rows, m = right.shape[:-1], right.shape[-1]
    for name in ("A", "B", "C"):
        band = arrays[name]
        try:
            if band.ndim < 3 or band.shape[-2:] != (m, m):
                raise ValueError
            rows = np.broadcast_shapes(rows, band.shape[:-2])
        except ValueError:
            message = f"{name}: has shape {band.shape}; {(*rows, m, m)} is needed for that of d"
            raise ArgumentError(message, name) from None
    right = np.broadcast_to(right, (*rows, m))
    expected, n = (*rows, m, m), rows[-1]
    bands = [np.ascontiguousarray(np.broadcast_to(arrays[name], expected)).reshape(-1) for name in ("A", "B", "C")]
    solution = np.ascontiguousarray(right).copy() if out is None else _output(out, right)
    if out is not None and solution is not right:
        solution[...] = right
    if not solution.flags.c_contiguous:
        raise ArgumentError("out: is not contiguous in the order of C", "out")
    if right.size == 0:
        return solution
    shape = (right.size // (n * m), n, m)
    flat = solution.reshape(-1)
    _femtile.solve_block_tridiagonal(_apart(bands, solution), flat, shape, pivoting, threads)
    return solution


def _message(
    failure: tuple[int, int, int], shape: tuple[int, ...], axis: int, is_c: bool, flags: tuple[bool, bool]
) -> str:
    """Describe the first system that failed by its place in the array of the caller."""
    n_failed, line, row = failure
    others = shape[:axis] + shape[axis + 1 :]
    index = [int(i) for i in np.unravel_index(line, others, order="C" if is_c else "F")] if others else []
    index.insert(axis, row)
    is_periodic, pivots = flags
    if is_periodic:
        advice = "check that row; rows of periodic systems are not exchanged: a sparse or dense solver does so"
    elif pivots:
        advice = "check that row"
    else:
        advice = "check that row, or solve with pivoting=True"
    return (
        f"b: {n_failed} of the systems could not be solved, the first at index {tuple(index)}: the pivot there is zero or "
        f"lost to rounding, or an entry is not finite; {advice}"
    )


def _numbers(given: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return arrays of one dtype: float32 where all are, else float64; numbers without an axis take that of the others."""
    arrays = {name: on_host(name, value) for name, value in given.items()}
    for name, array in arrays.items():
        real(name, array.dtype)
        if array.dtype.kind == "f" and array.dtype not in (np.float32, np.float64):
            raise ArgumentTypeError(f"{name}: has dtype {array.dtype}; float32 or float64 is needed", name)
    with_axes = [array for array in arrays.values() if array.ndim > 0]
    is_narrow = with_axes and all(array.dtype == np.float32 for array in with_axes)
    dtype = np.dtype(np.float32 if is_narrow else np.float64)
    return {name: array if array.dtype == dtype else array.astype(dtype) for name, array in arrays.items()}


def _shape(arrays: dict[str, NDArray[Any]], axis: int) -> tuple[tuple[int, ...], int]:
    """Return the shape of all arrays together, in which vectors lie along the axis of the systems, and that axis."""
    dimensions = max(array.ndim for array in arrays.values())
    if dimensions == 0:
        raise ArgumentError("d: all arrays are numbers without an axis; a vector is needed", "d")
    if not -dimensions <= count("axis", axis, -MOST) < dimensions:
        raise ArgumentError(f"axis: there is no axis {axis} in {dimensions} dimensions", "axis")
    axis %= dimensions
    shape: tuple[int, ...] = (1,) * dimensions
    # Those of d first, by which others are judged.
    for name in ("d", "a", "b", "c"):
        array = arrays[name]
        try:
            shape = np.broadcast_shapes(shape, _lying(array, dimensions, axis))
        except ValueError:
            message = f"{name}: has shape {array.shape}; {shape}, or {(shape[axis],)} for all systems, is needed"
            raise ArgumentError(message, name) from None
    return shape, axis


def _lying(array: NDArray[Any], dimensions: int, axis: int) -> tuple[int, ...]:
    """Return the shape of an array among others of more dimensions: that of a vector along the axis of the systems."""
    if array.ndim != 1:
        return array.shape
    return tuple(array.shape[0] if i == axis else 1 for i in range(dimensions))


def _along(array: NDArray[Any], shape: tuple[int, ...], axis: int) -> NDArray[Any]:
    """Return an array repeated to a shape."""
    return np.broadcast_to(array.reshape(_lying(array, len(shape), axis)), shape)


def _fitting(
    name: str, band: NDArray[Any], place: tuple[tuple[int, ...], int], is_shared: bool, is_c: bool
) -> NDArray[Any]:
    """Return a band in the order of d, or as one contiguous vector."""
    shape, axis = place
    if is_shared:
        if not band.flags.c_contiguous:
            warn_of_copy(name)
        return np.ascontiguousarray(band)
    if band.shape != shape:
        band = _along(band, shape, axis)
    elif not (band.flags.c_contiguous if is_c else band.flags.f_contiguous):
        warn_of_copy(name)
    return np.ascontiguousarray(band) if is_c else np.asfortranarray(band)


def _output(value: Any, right: NDArray[Any]) -> NDArray[Any]:
    if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack_device__"):
        on_host("out", value)
        raise ArgumentTypeError(f"out: an array of NumPy is needed, not {type(value).__name__}", "out")
    out = on_host("out", value)
    if out.dtype != right.dtype:
        raise ArgumentTypeError(f"out: has dtype {out.dtype}, but the solution has {right.dtype}", "out")
    if out.shape != right.shape:
        raise ArgumentError(f"out: has shape {out.shape}, but the solution has {right.shape}", "out")
    if not out.flags.writeable:
        raise ArgumentError("out: is read-only", "out")
    same_order = out.flags.c_contiguous if right.flags.c_contiguous else out.flags.f_contiguous
    if not same_order:
        raise ArgumentError("out: is not contiguous in the order of d", "out")
    return out


def _flat(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous array as a vector in the order of memory, without a copy."""
    return array.reshape(-1) if array.flags.c_contiguous else array.T.reshape(-1)


def _apart(bands: list[NDArray[Any]], solution: NDArray[Any]) -> list[NDArray[Any]]:
    """Copy bands that lie in the memory of the solution."""
    return [band.copy() if np.may_share_memory(band, solution) else band for band in bands]
