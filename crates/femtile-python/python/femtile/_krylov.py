"""Krylov methods with the signatures of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import count, matrix, real, right_sides, threads_of, vector
from ._errors import ArgumentError, ArgumentTypeError
from ._femtile import Matrix, krylov
from ._gpu import like
from ._outcome import Outcome

Callback = Callable[[float], object]


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    threads: int = 0,
) -> tuple[Any, int]:
    """Solve A x = b by conjugate gradients, A symmetric and positive or negative definite.

    The signature is that of `scipy.sparse.linalg.cg`, but for `callback`, which receives ‖r‖/‖b‖: the iterate is not at
    hand between iterations.

    Parameters
    ----------
    A : sparse matrix, LinearOperator or object with ``@``
        The matrix.
    b : array_like
        The right side, or several as columns of shape (N, K).
    x0 : array_like, optional
        The initial guess, of the shape of `b`; zero by default.
    rtol, atol : float
        The solve ends when ‖b − Ax‖ ≤ max(rtol · ‖b‖, atol), for each right side.
    maxiter : int, optional
        The most iterations for each right side; ten for each row by default.
    M : Amg, LinearOperator or sparse matrix, optional
        A preconditioner, an approximation of A⁻¹, such as ``femtile.amg(A)``.
    callback : callable, optional
        Called with ‖r‖/‖b‖ after every iteration.
    threads : int
        Threads of the processor; 0 for all.

    Returns
    -------
    x : array
        The solution, of the kind and the shape of `b`.
    info : int
        0 where it has converged, the number of iterations where it has not, -1 after a breakdown, as where A is indefinite,
        which `gmres` solves. Of several right sides the worst: -1, or else the largest number.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> import femtile
    >>> A = scipy.sparse.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(100, 100))
    >>> x, info = femtile.cg(A, np.ones(100), rtol=1e-8)
    >>> info, bool(np.allclose(A @ x, 1))
    (0, True)
    """
    limits = (rtol, atol, maxiter, 10)
    return _solve("cg", (A, b, x0, M), limits, 1, callback, threads)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    callback_type: str | None = None,
    threads: int = 0,
) -> tuple[Any, int]:
    """Solve A x = b by GMRES with restarts, A any square matrix, symmetric or not, definite or not.

    The signature is that of `scipy.sparse.linalg.gmres`. The preconditioner is applied on the right, so residuals are
    those of x itself.

    Parameters
    ----------
    A, b, x0, rtol, atol, M, threads
        As in `cg`.
    restart : int, optional
        Directions before a restart; 20 by default, or the number of rows where that is less.
    maxiter : int, optional
        The most restart cycles; ten for each row by default.
    callback : callable, optional
        Called with ‖r‖/‖b‖ after every iteration.
    callback_type : {None, "pr_norm", "legacy"}
        What `callback` receives; the iterate (``"x"``) is not at hand.

    Returns
    -------
    x : array
        The solution, of the kind and the shape of `b`.
    info : int
        As of `cg`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> import femtile
    >>> A = scipy.sparse.diags_array([-1.0, 3.0, -1.5], offsets=[-1, 0, 1], shape=(100, 100))
    >>> x, info = femtile.gmres(A, np.ones(100), rtol=1e-8)
    >>> info, bool(np.allclose(A @ x, 1))
    (0, True)
    """
    if callback_type not in (None, "pr_norm", "legacy"):
        message = f"callback_type: {callback_type!r} is not supported; the callback receives the residual (\"pr_norm\")"
        raise ArgumentError(message, "callback_type")
    n = A.shape[0]
    directions = min(20, n) if restart is None else count("restart", restart, 1)
    return _solve("gmres", (A, b, x0, M), (rtol, atol, maxiter, 10), directions, callback, threads)


def _solve(
    method: str,
    system: tuple[Any, Any, Any, Any],
    limits: tuple[float, float, int | None, int],
    restart: int,
    callback: Callback | None,
    threads: int,
) -> tuple[Any, int]:
    A, b, x0, M = system
    threads = threads_of(threads)
    operator, n = _operator("A", A, threads)
    of_m = None if M is None else _preconditioner(M, n)
    has_columns = np.ndim(b) == 2
    if has_columns:
        right, guess = right_sides(b, x0, n)
    else:
        right = vector("b", b, n)[:, None]
        guess = None if x0 is None else vector("x0", x0, n)[:, None]
    for name, values in (("b", right), ("x0", guess)):
        if values is not None:
            _finite(name, values, has_columns)
    settings, columns, infos = (limits, restart, threads, callback), [], []
    for i in range(right.shape[1]):
        start = np.zeros(n) if guess is None else guess[:, i]
        x, info = _solve_one(method, (A, M), (operator, of_m), (right[:, i], start), settings)
        columns.append(x)
        infos.append(info)
    found = np.stack(columns, axis=1) if has_columns else columns[0]
    return like(b, found), min(infos) if min(infos) < 0 else max(infos)


def _solve_one(
    method: str,
    given: tuple[Any, Any],
    operators: tuple[Any, Any],
    vectors: tuple[NDArray[np.float64], NDArray[np.float64]],
    settings: tuple[tuple[float, float, int | None, int], int, int, Callback | None],
) -> tuple[NDArray[np.float64], int]:
    (A, M), (operator, of_m), (b, x) = given, operators, vectors
    (rtol, atol, maxiter, per_row), restart, threads, callback = settings
    n, norm = b.shape[0], float(np.linalg.norm(b))
    tolerance = max(rtol, atol / norm if norm > 0 else 0.0)
    if not tolerance > 0:
        raise ArgumentError(f"rtol: {rtol} is not positive; 1e-10 is a good choice", "rtol")
    if tolerance >= 1:
        # Zero meets it.
        return np.zeros(n), 0
    steps = per_row * n if maxiter is None else count("maxiter", maxiter)
    limits = (tolerance, steps * restart, restart, threads)
    found, raw = krylov(method, (operator, of_m), b, x, limits, callback)
    if method == "cg" and _broke_down_at_once(raw):
        # Where A is negative definite, −A is not, and where M is as well, neither is −M.
        operator, _ = _operator("A", _Negative(A), threads)
        found, raw = krylov(method, (operator, of_m), -b, x, limits, callback)
        if M is not None and _broke_down_at_once(raw):
            of_m = _preconditioner(_Negative(M), n)
            found, raw = krylov(method, (operator, of_m), -b, x, limits, callback)
    outcome = Outcome(*raw)
    if outcome.has_converged:
        return found, 0
    return found, -1 if outcome.stop in ("breakdown", "diverged") else max(outcome.iterations, 1)


def _broke_down_at_once(raw: Any) -> bool:
    outcome = Outcome(*raw)
    return outcome.stop == "breakdown" and outcome.iterations == 0


def _finite(name: str, columns: NDArray[np.float64], has_columns: bool) -> None:
    bad = np.argwhere(~np.isfinite(columns))
    if bad.size:
        i, j = map(int, bad[0])
        where = f"entry {i} of column {j}" if has_columns else f"entry {i}"
        raise ArgumentError(f"{name}: {where} (counted from 0) is {columns[i, j]}", name)


def _operator(name: str, A: Any, threads: int) -> tuple[Any, int]:
    """Return a matrix of the library or a function, and the number of rows."""
    if hasattr(A, "tocsr"):
        parts = matrix(name, A)
        return Matrix(parts, threads), parts[0]
    rows, columns = A.shape
    if rows != columns:
        raise ArgumentError(f"{name}: {rows} × {columns} is not square", name)
    if rows == 0:
        raise ArgumentError(f"{name}: is empty", name)
    if getattr(A, "dtype", None) is not None:
        real(name, np.dtype(A.dtype))
    if hasattr(A, "femtile_operator"):
        return A.femtile_operator, rows
    return (lambda x: vector(f"{name} @ x", A @ x, rows)), rows


class _Negative:
    """The product −A x of an operator."""

    def __init__(self, A: Any) -> None:
        self.shape = A.shape
        self._positive = A

    def __matmul__(self, x: Any) -> Any:
        return -(self._positive @ x)


def _preconditioner(M: Any, n: int) -> Any:
    shape = getattr(M, "shape", None)
    if shape is None:
        kind = type(M).__name__
        message = f"M: femtile.amg(A), a matrix or a LinearOperator is needed, not {kind}"
        raise ArgumentTypeError(message, "M")
    if tuple(shape) != (n, n):
        raise ArgumentError(f"M: has shape {tuple(shape)}, the matrix {(n, n)}", "M")
    if hasattr(M, "femtile_solver"):
        return M.femtile_solver
    return lambda x: vector("M @ x", M @ x, n)
