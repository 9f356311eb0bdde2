"""Sparse matrices in slices of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import linear_operator, matrix, on_host, real
from ._errors import ArgumentError
from ._femtile import Slices


class EllWarp:
    """A sparse matrix in ELL-WARP, for products: rows in slices, each padded to its longest row.

    Parameters
    ----------
    A : scipy.sparse matrix or array
        A real matrix of any shape; float32 stays float32.
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

    def __init__(self, A: Any, *, threads: int = 0) -> None:
        parts = matrix("A", A, square=False, keeps_float32=True)
        self.shape = (len(parts[1]) - 1, parts[0])
        self.dtype: np.dtype[Any] = parts[3].dtype
        self._slices = Slices(parts, threads)

    def __repr__(self) -> str:
        return f"<femtile.EllWarp: {self.shape[0]} × {self.shape[1]}, {self.n_stored} stored entries of {self.dtype}>"

    @property
    def n_stored(self) -> int:
        """Number of stored entries, padding included."""
        return self._slices.n_stored()

    def __matmul__(self, x: Any) -> NDArray[Any]:
        vectors = on_host("x", x)
        real("x", vectors.dtype)
        if vectors.ndim not in (1, 2) or vectors.shape[0] != self.shape[1]:
            raise ArgumentError(f"x: has shape {vectors.shape}; {self.shape[1]} rows are needed", "x")
        if vectors.ndim == 2:
            products = [self @ np.ascontiguousarray(column) for column in vectors.T]
            return np.stack(products, axis=1) if products else np.empty((self.shape[0], 0), self.dtype)
        y = np.empty(self.shape[0], self.dtype)
        self._slices.apply(y, np.ascontiguousarray(vectors, dtype=self.dtype))
        return y

    def aslinearoperator(self) -> Any:
        """Return the matrix as a `scipy.sparse.linalg.LinearOperator`."""
        return linear_operator(self.shape, self.dtype, matvec=self.__matmul__)
