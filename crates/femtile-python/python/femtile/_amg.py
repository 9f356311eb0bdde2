"""Algebraic multigrid for matrices of SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ._arrays import block_rows, count, linear_operator, matrix, on_host, right_sides, threads_of, vector
from ._errors import ArgumentError, ArgumentTypeError, ConvergenceWarning, NotDefiniteError
from ._femtile import Solver
from ._gpu import View, is_on_gpu, like, require_contiguous, streams, view
from ._outcome import Outcome


#: Device, threads, rows of a node, strength, smoother, cycle, precision.
Settings = tuple[str, int, int, float | None, str, str, str]


class Level(NamedTuple):
    """A level of multigrid: the rows and the stored entries of its matrix."""

    rows: int
    entries: int | None


class Amg:
    """A symmetric positive definite matrix with algebraic multigrid; `femtile.amg` makes it.

    It is a preconditioner of `femtile.cg`, of `femtile.gmres` and of the methods of SciPy: one cycle, ``M @ r``. A pickle has
    the matrix, which is kept by reference, and the settings; levels are set up anew.

    Attributes
    ----------
    shape : tuple of int
        The shape of the matrix.
    dtype : dtype
        float64.
    """

    def __init__(self, A: Any, near_nullspace: Any, settings: Settings) -> None:
        parts = matrix("A", A)
        near = None if near_nullspace is None else _columns(near_nullspace, parts[0])
        self.femtile_solver = Solver(parts, near, settings)
        self.shape = (parts[0], parts[0])
        self.dtype: np.dtype[Any] = np.dtype(np.float64)
        self._made_of = (A, near_nullspace, settings)

    def __reduce__(self) -> tuple[Any, ...]:
        return Amg, self._made_of

    def __repr__(self) -> str:
        rows = ", ".join(str(level.rows) for level in self.hierarchy)
        return f"<femtile.Amg: levels of {rows} rows, {self.device}>"

    @property
    def hierarchy(self) -> tuple[Level, ...]:
        """The levels, the finest first."""
        return tuple(Level(*level) for level in self.femtile_solver.levels())

    @property
    def device(self) -> str:
        """The device that solves, in words."""
        return self.femtile_solver.description()[0]

    @property
    def device_reason(self) -> str:
        """The reason for the device."""
        return self.femtile_solver.description()[1]

    @property
    def warnings(self) -> list[str]:
        """Warnings of the set-up."""
        return self.femtile_solver.description()[3]

    @overload
    def solve(
        self,
        b: Any,
        *,
        tol: float = ...,
        x0: Any = ...,
        maxiter: int = ...,
        time_limit: float | None = ...,
        callback: Callable[[float], object] | None = ...,
        return_outcome: Literal[False] = ...,
    ) -> Any: ...

    @overload
    def solve(
        self,
        b: Any,
        *,
        tol: float = ...,
        x0: Any = ...,
        maxiter: int = ...,
        time_limit: float | None = ...,
        callback: Callable[[float], object] | None = ...,
        return_outcome: Literal[True],
    ) -> tuple[Any, Any]: ...

    def solve(
        self,
        b: Any,
        *,
        tol: float = 1e-10,
        x0: Any = None,
        maxiter: int = 10_000,
        time_limit: float | None = None,
        callback: Callable[[float], object] | None = None,
        return_outcome: bool = False,
    ) -> Any:
        """Solve A x = b by conjugate gradients with a cycle of multigrid as preconditioner.

        Parameters
        ----------
        b : array_like
            The right side, or several as columns of shape (N, K). Where the matrix is on a GPU, one right side may be an
            array of CuPy, PyTorch or JAX there, float64.
        tol : float
            The solve ends when ‖r‖ ≤ tol · ‖b‖ and the estimate of the error is of that order too.
        x0 : array_like, optional
            The initial guess, of the shape of `b`; zero by default.
        maxiter : int
            The most iterations for each right side.
        time_limit : float, optional
            The most seconds for each right side.
        callback : callable, optional
            Called with ‖r‖/‖b‖ after every iteration.
        return_outcome : bool
            Whether to return the `Outcome` as well; then a solve that does not converge gives no warning.

        Returns
        -------
        x : array
            The solution, of the kind and the shape of `b`.
        outcome : Outcome, or list of Outcome
            Only with `return_outcome`; a list where `b` has columns.

        Raises
        ------
        NotDefiniteError
            The iterations have met a direction without positive energy.

        Warns
        -----
        ConvergenceWarning
            The tolerance was not met.
        """
        if time_limit is not None and not 0 <= time_limit < 1e9:
            raise ArgumentError(f"time_limit: {time_limit} is no number of seconds", "time_limit")
        limits, n = (tol, count("maxiter", maxiter), time_limit), self.shape[0]
        has_columns = not is_on_gpu(b) and np.ndim(b) == 2
        if is_on_gpu(b):
            x, found = self._solve_on_gpu(b, x0, limits, callback)
            outcomes = [found]
        elif has_columns:
            right, guess = right_sides(b, x0, n)
            columns = [
                self.femtile_solver.solve(right[:, i], None if guess is None else guess[:, i], limits, callback)
                for i in range(right.shape[1])
            ]
            x, outcomes = like(b, np.stack([column for column, _ in columns], axis=1)), [Outcome(*raw) for _, raw in columns]
        else:
            first = None if x0 is None else vector("x0", x0, n)
            on_host_x, raw = self.femtile_solver.solve(vector("b", b, n), first, limits, callback)
            x, outcomes = like(b, on_host_x), [Outcome(*raw)]
        if return_outcome:
            return x, outcomes if has_columns else outcomes[0]
        for i, outcome in enumerate(outcomes):
            where = f" for column {i} of b (counted from 0)" if has_columns else ""
            if outcome.stop in ("breakdown", "diverged"):
                raise NotDefiniteError(f"A: the solve{where} {outcome.message}", "A")
            if not outcome.has_converged:
                message = (
                    f"the solve{where} {outcome.message} (‖b − Ax‖/‖b‖ = {outcome.true_relative_residual:.2e} after "
                    f"{outcome.iterations} iterations)"
                )
                warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return x

    def _solve_on_gpu(
        self,
        b: Any,
        x0: Any,
        limits: tuple[float, int, float | None],
        callback: Callable[[float], object] | None,
    ) -> tuple[Any, Outcome]:
        where = self.femtile_solver.gpu()
        if where is None:
            message = 'b: lies in the memory of a GPU, the matrix in that of the host; amg(A, device="cuda") goes there'
            raise ArgumentTypeError(message, "b")
        given = {"b": b} if x0 is None else {"b": b, "x0": x0}
        views = [self._on_gpu(view(name, value, *where)) for name, value in given.items()]
        guess = None if x0 is None else views[1].address
        given_b = (views[0].address, guess, self.shape[0])
        x, found = self.femtile_solver.solve_on_gpu(given_b, limits, streams(views), callback)
        return like(b, x), Outcome(*found)

    def _on_gpu(self, found: View) -> View:
        if found.dtype != np.float64:
            raise ArgumentTypeError(f"{found.name}: has dtype {found.dtype}; float64 is needed on a GPU", found.name)
        if found.shape != self.shape[:1]:
            message = f"{found.name}: has shape {found.shape}; one vector of {self.shape[0]} entries is needed"
            raise ArgumentError(message, found.name)
        require_contiguous(found, found.is_c)
        return found

    def precondition(self, r: Any) -> NDArray[np.float64]:
        """Apply one cycle to a residual."""
        return self.femtile_solver.precondition(vector("x", r, self.shape[0]))

    def matvec(self, r: Any) -> NDArray[np.float64]:
        """Apply one cycle to a residual, as methods of SciPy ask for it."""
        return self.precondition(r)

    def __matmul__(self, r: Any) -> NDArray[np.float64]:
        return self.precondition(r)

    def aspreconditioner(self) -> Any:
        """Return one cycle as a `scipy.sparse.linalg.LinearOperator`.

        Examples
        --------
        >>> import numpy as np, scipy.sparse, scipy.sparse.linalg
        >>> import femtile
        >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500))
        >>> M = femtile.amg(A).aspreconditioner()
        >>> x, info = scipy.sparse.linalg.cg(A, np.ones(500), M=M, rtol=1e-8)
        >>> info
        0
        """
        apply = self.precondition
        operator = linear_operator(self.shape, np.dtype(np.float64), matvec=apply, rmatvec=apply)
        operator.femtile_solver = self.femtile_solver
        return operator

    def refill(self, A: Any) -> None:
        """Take over other values on the same pattern; the aggregates stay.

        Parameters
        ----------
        A : scipy.sparse matrix or array
            A matrix with entries at the same places.
        """
        self.femtile_solver.refill(matrix("A", A))
        self._made_of = (A, *self._made_of[1:])


def amg(
    A: Any,
    near_nullspace: Any = None,
    device: str = "auto",
    *,
    block_size: int | None = None,
    strength: float | None = None,
    smoother: str = "chebyshev",
    cycle: str = "v",
    precision: str = "f32",
    threads: int = 0,
) -> Amg:
    """Set up smoothed-aggregation multigrid for a symmetric positive definite matrix, or a negative definite one.

    Parameters
    ----------
    A : scipy.sparse matrix or array
        A real matrix, symmetric and positive definite; of any format. Duplicate entries are summed. Where all of its
        diagonal is negative, −A is set up in its place, with a warning in `Amg.warnings`.
    near_nullspace : array_like, optional
        Vectors on which the matrix is small, as columns, such as the rigid motions of elasticity; the constant by
        default.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
    block_size : int, optional
        Rows of a node, such as 3 for displacements; by default those of a block of a matrix in BSR, 1 in other formats.
    strength : float, optional
        Strength of connection θ: 0.04 by default, 0.08 for nodes of several rows.
    smoother : str
        ``"chebyshev"``, ``"jacobi"``, ``"gauss-seidel"`` (on processors) or ``"patch"``.
    cycle : str
        ``"v"``, ``"w"`` or ``"k"`` (on processors).
    precision : str
        ``"f32"`` or ``"f64"``: that of the levels; the solve is in float64.
    threads : int
        Threads of the processor; 0 for all.

    Returns
    -------
    Amg
        The matrix with its levels, for any number of right sides.

    Raises
    ------
    ArgumentError
        The matrix is not square, is not symmetric or has an entry that is not finite.
    NotDefiniteError
        The matrix is seen not to be positive definite.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> import femtile
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(1000, 1000))
    >>> solver = femtile.amg(A)
    >>> x = solver.solve(np.ones(1000))
    >>> bool(np.abs(A @ x - 1).max() < 1e-6)
    True
    >>> solver.hierarchy[0]
    Level(rows=1000, entries=2998)
    """
    rows = block_rows(A) if block_size is None else count("block_size", block_size, 1)
    return Amg(A, near_nullspace, (device, threads_of(threads), rows, strength, smoother, cycle, precision))


def _columns(value: Any, n: int) -> NDArray[np.float64]:
    """Return vectors one after the other."""
    vectors = on_host("near_nullspace", value)
    if vectors.ndim == 1:
        return vector("near_nullspace", vectors, n)
    if vectors.ndim != 2 or vectors.shape[0] != n:
        message = f"near_nullspace: has shape {vectors.shape}; vectors of {n} entries are needed as columns"
        raise ArgumentError(message, "near_nullspace")
    flat = np.ravel(vectors, order="F")
    return vector("near_nullspace", flat, flat.shape[0])
