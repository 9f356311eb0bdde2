"""Checks of arrays, and their conversion without a copy where it is possible."""

from __future__ import annotations

import importlib
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import ArgumentError, ArgumentTypeError, CopyWarning
from ._gpu import HOST, PINNED

#: Columns, row offsets, columns of entries and values of a matrix in compressed sparse rows.
Parts = tuple[int, NDArray[Any], NDArray[Any], NDArray[Any]]

#: The largest number of iterations, threads and rows of a node.
MOST = 2**62

_warned: set[str] = set()


def real(name: str, dtype: np.dtype[Any]) -> None:
    """Refuse numbers that are not real."""
    if dtype.kind == "c":
        raise ArgumentTypeError(f"{name}: complex numbers ({dtype}) are not supported; solve for real parts", name)
    if dtype.kind not in "fiub":
        raise ArgumentTypeError(f"{name}: has dtype {dtype}; real numbers are needed", name)


def count(name: str, value: Any, least: int = 0, advice: str = "") -> int:
    """Return a whole number of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{name}: a whole number is needed, not {type(value).__name__}", name) from None
    if least <= number <= MOST:
        return number
    limit = f"less than {least}" if number < least else f"more than {MOST}"
    raise ArgumentError(f"{name}: {number} is {limit}{advice and f'; {advice}'}", name)


def threads_of(value: Any) -> int:
    """Return a number of threads."""
    return count("threads", value, advice="0 takes all cores")


def on_host(name: str, value: Any) -> NDArray[Any]:
    """Return an array of NumPy, without a copy where `value` lies in the memory of the host."""
    if type(value) is np.ndarray:
        return value
    device = getattr(value, "__dlpack_device__", None)
    is_of_host = device is not None and device()[0] in (HOST, PINNED)
    if not is_of_host and (device is not None or hasattr(value, "__cuda_array_interface__")):
        message = f"{name}: lies in the memory of a GPU; arrays of the host are needed (cupy.asnumpy, Tensor.cpu)"
        raise ArgumentTypeError(message, name)
    try:
        return np.from_dlpack(value) if is_of_host and not hasattr(value, "__array__") else np.asarray(value)
    except (BufferError, RuntimeError) as error:
        raise ArgumentTypeError(f"{name}: {error}", name) from None


def warn_of_copy(name: str) -> None:
    """Warn, once for each argument, that an array is copied."""
    if name not in _warned:
        _warned.add(name)
        message = f"{name} is not contiguous and is copied in every call; numpy.ascontiguousarray saves that"
        warnings.warn(message, CopyWarning, stacklevel=4)


def vector(name: str, value: Any, n: int) -> NDArray[np.float64]:
    """Return a contiguous vector of `n` float64, which is `value` itself where it can be."""
    if type(value) is np.ndarray and value.dtype == np.float64 and value.shape == (n,) and value.flags.c_contiguous:
        return value
    found = on_host(name, value)
    real(name, found.dtype)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise ArgumentError(f"{name}: has shape {found.shape}; one vector of {n} entries is needed", name)
    if found.shape[0] != n:
        raise ArgumentError(f"{name}: {found.shape[0]} entries where {n} are needed", name)
    if not found.flags.c_contiguous:
        warn_of_copy(name)
    return np.ascontiguousarray(found, dtype=np.float64)


def columns_of(name: str, value: Any, n: int) -> NDArray[np.float64]:
    """Return columns of `n` entries, each of them contiguous."""
    found = on_host(name, value)
    real(name, found.dtype)
    if found.ndim != 2 or found.shape[0] != n:
        raise ArgumentError(f"{name}: has shape {found.shape}; columns of {n} entries are needed", name)
    return np.asfortranarray(found, dtype=np.float64)


def right_sides(b: Any, x0: Any, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the columns of right sides, and those of their guesses where there are some."""
    right, guess = columns_of("b", b, n), None if x0 is None else columns_of("x0", x0, n)
    if right.shape[1] == 0:
        raise ArgumentError("b: there is no right side: it has no column", "b")
    if guess is not None and guess.shape != right.shape:
        raise ArgumentError(f"x0: has shape {guess.shape}, but b has {right.shape}", "x0")
    return right, guess


def block_rows(value: Any) -> int:
    """Return the rows of a block of a matrix in BSR whose blocks are square; 1 for other matrices."""
    if getattr(value, "format", None) != "bsr":
        return 1
    rows, columns = value.blocksize
    return int(rows) if rows == columns else 1


def matrix(name: str, value: Any, *, square: bool = True, keeps_float32: bool = False) -> Parts:
    """Return a sparse matrix of SciPy in compressed sparse rows, columns ascending, duplicates summed."""
    if not hasattr(value, "tocsr"):
        on_host(name, value)
        kind = type(value).__name__
        message = f"{name}: a matrix of scipy.sparse is needed, not {kind}; scipy.sparse.csr_array({name}) makes one"
        raise ArgumentTypeError(message, name)
    if hasattr(getattr(value, "data", None), "__cuda_array_interface__"):
        on_host(name, value.data)
    real(name, value.dtype)
    rows, columns = value.shape
    if square and rows != columns:
        raise ArgumentError(f"{name}: {rows} × {columns} is not square", name)
    if rows == 0 or columns == 0:
        raise ArgumentError(f"{name}: is empty ({rows} × {columns})", name)
    csr = value.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy() if csr is value else csr
        csr.sum_duplicates()
    dtype = np.float32 if keeps_float32 and csr.dtype == np.float32 else np.float64
    values = np.ascontiguousarray(csr.data, dtype=dtype)
    return columns, _indices(csr.indptr), _indices(csr.indices), values


def linear_operator(shape: tuple[int, int], dtype: np.dtype[Any], **functions: Callable[[Any], Any]) -> Any:
    """Return a `scipy.sparse.linalg.LinearOperator`; SciPy is loaded when it is asked for."""
    make: Any = importlib.import_module("scipy.sparse.linalg").LinearOperator
    return make(shape, dtype=dtype, **functions)


def _indices(values: NDArray[Any]) -> NDArray[Any]:
    is_known = values.dtype in (np.int32, np.int64)
    return np.ascontiguousarray(values, dtype=None if is_known else np.int64)


def as_rows(fields: Mapping[str, Any] | None) -> dict[str, NDArray[np.float64]]:
    """Return fields by name with an entry a row, as the compiled part takes them."""
    found = {}
    for name, values in (fields or {}).items():
        array = np.asarray(values, dtype=np.float64)
        found[name] = np.ascontiguousarray(array.reshape(array.shape[0], -1))
    return found
