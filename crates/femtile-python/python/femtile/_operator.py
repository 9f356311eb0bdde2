"""Linear operators of problems on meshes, with and without a stored matrix."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _femtile
from ._arrays import vector
from ._errors import ArgumentError
from ._solution import Solution


class Operator:
    """The operator A of a problem on a mesh, with its right side b; `Poisson.operator` makes it.

    Where SciPy is installed it is a `scipy.sparse.linalg.LinearOperator` too. Rows of given values are those of the
    identity, and their right side is zero; `solution` puts the values in. Unknowns have an order of their own on
    quadrilaterals and hexahedra; on triangles and tetrahedra they are those of the nodes. Those of several components
    alternate.

    Attributes
    ----------
    shape : tuple of int
        The shape of A.
    dtype : dtype
        float64.
    """

    def __init__(self, raw: _femtile.Operator) -> None:
        self.femtile_operator = raw
        n = raw.diagonal().shape[0]
        self.shape = (n, n)
        self.dtype: np.dtype[Any] = np.dtype(np.float64)

    def __repr__(self) -> str:
        return f"<femtile.Operator: {self.shape[0]} unknowns, {self.format}>"

    @property
    def format(self) -> str:
        """The format: that of a matrix, or ``matrix-free``."""
        return self.femtile_operator.description()[0]

    @property
    def is_pure_neumann(self) -> bool:
        """Whether constants are in the kernel of A, since no condition settles u."""
        return self.femtile_operator.description()[1]

    @property
    def rhs(self) -> NDArray[np.float64]:
        """The right side, given values lifted."""
        return self.femtile_operator.right_side()

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal of A."""
        return self.femtile_operator.diagonal()

    def matvec(self, x: Any) -> NDArray[np.float64]:
        """Return A x for one vector."""
        given = vector("x", x, self.shape[1])
        y = np.empty(self.shape[0])
        self.femtile_operator.apply(y, given)
        return y

    def __matmul__(self, x: Any) -> NDArray[np.float64]:
        if np.ndim(x) == 1:
            return self.matvec(x)
        columns = np.asarray(x)
        if columns.ndim != 2 or columns.shape[0] != self.shape[1]:
            raise ArgumentError(f"x: has shape {columns.shape}; {self.shape[1]} rows are needed", "x")
        products = [self.matvec(np.ascontiguousarray(column)) for column in columns.T]
        return np.stack(products, axis=1) if products else np.empty((self.shape[0], 0))

    def solution(self, w: Any) -> Solution:
        """Return the solution of the problem from that of A w = b, w: given values put in, a free constant removed.

        Its report is empty.
        """
        return Solution(None, self.femtile_operator.solution(vector("w", w, self.shape[0])))


@cache
def operator_class() -> type[Operator]:
    """Return the class of operators: with that of SciPy as a base where it is installed."""
    try:
        base: Any = importlib.import_module("scipy.sparse.linalg").LinearOperator
    except ImportError:
        return Operator

    class ScipyOperator(base, Operator):  # type: ignore[misc]
        """An operator that is one of SciPy as well."""

        def __init__(self, raw: _femtile.Operator) -> None:
            Operator.__init__(self, raw)
            base.__init__(self, self.dtype, self.shape)

        def _matvec(self, x: Any) -> NDArray[np.float64]:
            # Columns of a matrix come with strides.
            return Operator.matvec(self, np.ascontiguousarray(x))

        def _adjoint(self) -> ScipyOperator:
            return self

        def _transpose(self) -> ScipyOperator:
            return self

        __repr__ = Operator.__repr__
        __doc__ = Operator.__doc__

    return ScipyOperator
