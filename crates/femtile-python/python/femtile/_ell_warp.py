"""Sparse matrices in slices of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import linear_operator, matrix, on_host, real, threads_of
from ._errors import ArgumentError, ArgumentTypeError
from ._femtile import Slices, gpu_stream
from ._gpu import View, is_on_gpu, like, require_contiguous, require_writable, streams, view


class EllWarp:
    """A sparse matrix in ELL-WARP, for products: rows in slices, each padded to its longest row.

    Parameters
    ----------
    A : scipy.sparse matrix or array
        A real matrix of any shape; float32 stays float32. It is kept by reference, for pickles.
    device : str
        ``"cpu"``, or ``"cuda"`` or ``"cuda:N"`` for products with arrays of CuPy, PyTorch or JAX on that GPU.
    threads : int
        Threads of a product; 0 for all.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> import femtile
    >>> A = scipy.sparse.random_array((50, 40), density=0.1, random_state=1)
    >>> y = femtile.EllWarp(A) @ np.ones(40)
    >>> bool(np.allclose(y, A @ np.ones(40)))
    True
    """

    def __init__(self, A: Any, *, device: str = "cpu", threads: int = 0) -> None:
        self._gpu = _gpu_of(device)
        parts = matrix("A", A, square=False, keeps_float32=True)
        self.shape = (len(parts[1]) - 1, parts[0])
        self.dtype: np.dtype[Any] = parts[3].dtype
        self._slices = Slices(parts, threads_of(threads), self._gpu)
        self._made_of = (A, device, threads)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, self._made_of

    def __repr__(self) -> str:
        return f"<femtile.EllWarp: {self.shape[0]} × {self.shape[1]}, {self.n_stored} stored entries of {self.dtype}>"

    @property
    def n_stored(self) -> int:
        """Number of stored entries, padding included."""
        return self._slices.n_stored()

    def apply(self, x: Any, out: Any = None) -> Any:
        """Return A x for one vector; `out` is an array for it.

        Parameters
        ----------
        x : array
            The vector, in the memory of the device of the matrix.
        out : array, optional
            The array for the product, of the dtype of the matrix.
        """
        if self._gpu is not None:
            return self._apply_on_gpu(x, out, self._gpu)
        if out is None:
            return self @ x
        target = on_host("out", out)
        if target.dtype != self.dtype or target.shape != self.shape[:1] or not target.flags.c_contiguous:
            message = f"out: a contiguous vector of {self.shape[0]} entries of {self.dtype} is needed"
            raise ArgumentError(message, "out")
        if not target.flags.writeable:
            raise ArgumentError("out: is read-only", "out")
        self._slices.apply(target, self._vector(x, target))
        return out

    def _vector(self, x: Any, target: NDArray[Any]) -> NDArray[Any]:
        """Return a vector for a product into `target`."""
        vectors = on_host("x", x)
        real("x", vectors.dtype)
        if vectors.shape != self.shape[1:]:
            raise ArgumentError(f"x: has shape {vectors.shape}; {self.shape[1]} entries are needed", "x")
        contiguous = np.ascontiguousarray(vectors, dtype=self.dtype)
        return contiguous.copy() if np.may_share_memory(contiguous, target) else contiguous

    def _apply_on_gpu(self, x: Any, out: Any, gpu: int) -> Any:
        stream = gpu_stream(gpu)
        given = view("x", x, gpu, stream)
        self._check_on_gpu(given, self.shape[1])
        if out is None:
            made = self._slices.apply_on_gpu(None, given.address, streams([given]))
            return like(x, made)
        target = view("out", out, gpu, stream)
        self._check_on_gpu(target, self.shape[0])
        require_writable("out", out, target)
        if target.overlaps(given):
            raise ArgumentError("out: shares memory with x", "out")
        self._slices.apply_on_gpu(target.address, given.address, streams([given, target]))
        return out

    def _check_on_gpu(self, found: View, n: int) -> None:
        if found.dtype != self.dtype:
            message = f"{found.name}: has dtype {found.dtype}, but the matrix has {self.dtype}"
            raise ArgumentTypeError(message, found.name)
        if found.shape != (n,):
            raise ArgumentError(f"{found.name}: has shape {found.shape}; one vector of {n} entries is needed", found.name)
        require_contiguous(found, found.is_c)

    def __matmul__(self, x: Any) -> Any:
        if self._gpu is not None:
            return self._apply_on_gpu(x, None, self._gpu)
        if is_on_gpu(x):
            message = "x: lies in the memory of a GPU, the matrix in that of the host; EllWarp(A, device=\"cuda\") goes there"
            raise ArgumentTypeError(message, "x")
        vectors = on_host("x", x)
        real("x", vectors.dtype)
        if vectors.ndim not in (1, 2) or vectors.shape[0] != self.shape[1]:
            raise ArgumentError(f"x: has shape {vectors.shape}; {self.shape[1]} rows are needed", "x")
        if vectors.ndim == 2:
            products = [self @ np.ascontiguousarray(column) for column in vectors.T]
            found = np.stack(products, axis=1) if products else np.empty((self.shape[0], 0), self.dtype)
            return like(x, found)
        y = np.empty(self.shape[0], self.dtype)
        self._slices.apply(y, np.ascontiguousarray(vectors, dtype=self.dtype))
        return like(x, y)

    def matvec(self, x: Any) -> Any:
        """Return A x for one vector, as methods of SciPy ask for it."""
        return self @ x

    def aslinearoperator(self) -> Any:
        """Return the matrix as a `scipy.sparse.linalg.LinearOperator`."""
        return linear_operator(self.shape, self.dtype, matvec=self.__matmul__)


def _made(A: Any, device: str, threads: int) -> EllWarp:
    return EllWarp(A, device=device, threads=threads)


def _gpu_of(device: str) -> int | None:
    """Return the number of the GPU of a device by name; none for the processor."""
    if device == "cpu":
        return None
    kind, _, number = device.partition(":")
    if kind != "cuda" or not (number.isdecimal() or device == "cuda"):
        raise ArgumentError(f'device: {device!r} is none of "cpu", "cuda" and "cuda:N"', "device")
    return int(number or 0)
