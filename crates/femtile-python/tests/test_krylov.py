"""Krylov methods against SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from conftest import laplacian

import femtile


@pytest.mark.parametrize("method", [femtile.cg, femtile.gmres])
def test_the_solution_meets_the_tolerance_of_scipy(method, A, rng):
    b = rng.standard_normal(A.shape[0])
    x, info = method(A, b, rtol=1e-9)
    assert info == 0 and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


def test_gmres_solves_where_the_matrix_is_not_symmetric(rng):
    A = sp.diags_array([-2.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(300, 300))
    b = rng.standard_normal(300)
    x, info = femtile.gmres(A, b, rtol=1e-10, restart=10)
    assert info == 0 and np.allclose(x, spl.spsolve(A.tocsc(), b))


def test_operators_and_dense_matrices_of_python_are_taken(A):
    b, dense = np.ones(100), laplacian(10).toarray()
    operator = spl.aslinearoperator(laplacian(10))
    for given in (dense, operator, femtile.EllWarp(laplacian(10))):
        x, info = femtile.cg(given, b, rtol=1e-10)
        assert info == 0 and np.allclose(dense @ x, b)


def test_a_preconditioner_of_python_is_applied(A):
    b, calls, residuals = np.ones(A.shape[0]), [], []
    inverse = spl.factorized(A.tocsc())

    def exact(r):
        calls.append(1)
        return inverse(r)

    M = spl.LinearOperator(A.shape, matvec=exact)
    for method in (femtile.cg, femtile.gmres):
        residuals.clear()
        _, info = method(A, b, M=M, rtol=1e-8, callback=residuals.append)
        assert info == 0 and len(residuals) <= 5
    assert calls


@pytest.mark.parametrize("threads", [0, 1])
def test_a_method_within_another_has_the_threads_that_there_are(A, threads):
    b = np.ones(A.shape[0])
    inner = spl.LinearOperator(A.shape, matvec=lambda r: femtile.cg(A, r, rtol=1e-3, threads=threads)[0])
    x, info = femtile.gmres(A, b, M=inner, rtol=1e-8, threads=threads)
    assert info == 0 and np.linalg.norm(A @ x - b) <= 1e-7 * np.linalg.norm(b)


def test_what_python_functions_raise_is_raised_here(A):
    def failing(_):
        raise RuntimeError("from the operator")

    b = np.ones(A.shape[0])
    with pytest.raises(RuntimeError, match="from the operator"):
        femtile.cg(spl.LinearOperator(A.shape, matvec=failing, dtype=float), b)
    with pytest.raises(RuntimeError, match="from the operator"):
        femtile.cg(A, b, callback=failing)


def test_limits_and_breakdowns_are_told_by_info(A):
    b = np.ones(A.shape[0])
    assert femtile.cg(A, b, maxiter=3)[1] == 3
    assert femtile.cg(sp.csr_array(A - 3 * sp.eye_array(1600)), b)[1] == -1
    x, info = femtile.cg(A, b, atol=1e9)
    assert info == 0 and not x.any()
    assert femtile.cg(A, np.zeros(A.shape[0]))[1] == 0


def test_a_negative_definite_matrix_is_solved_as_its_negative(A):
    b, M = np.ones(A.shape[0]), femtile.amg(A)
    for given in (sp.csr_array(-A), spl.aslinearoperator(-A)):
        for preconditioner in (None, M):
            x, info = femtile.cg(given, b, M=preconditioner, rtol=1e-10)
            assert info == 0 and np.allclose(A @ x, -b)


def test_multigrid_of_a_negative_definite_matrix_is_its_preconditioner(A):
    negative, b = sp.csr_array(-A), np.ones(A.shape[0])
    M = femtile.amg(negative)
    assert any("−A x = −b" in warning for warning in M.warnings)
    plain = femtile.amg(A)
    assert np.array_equal(M @ b, -(plain @ b))
    assert np.allclose(A @ M.solve(b), -b)
    for method in (femtile.cg, femtile.gmres):
        residuals = []
        x, info = method(negative, b, M=M, rtol=1e-10, callback=residuals.append)
        assert info == 0 and np.allclose(A @ x, -b) and len(residuals) < 40


def test_an_indefinite_matrix_is_for_gmres(A):
    indefinite, b = sp.csr_array(A - 0.3 * sp.eye_array(A.shape[0])), np.ones(A.shape[0])
    assert femtile.cg(indefinite, b)[1] == -1
    with pytest.raises(femtile.NotDefiniteError, match="femtile.gmres"):
        femtile.amg(indefinite)
    x, info = femtile.gmres(indefinite, b, rtol=1e-10, restart=400)
    assert info == 0 and np.linalg.norm(indefinite @ x - b) <= 2e-10 * np.linalg.norm(b)


@pytest.mark.parametrize("method", [femtile.cg, femtile.gmres])
def test_several_right_sides_are_columns(method, A, rng):
    n = A.shape[0]
    B, M = rng.standard_normal((n, 3)), femtile.amg(A)
    X, info = method(A, B, rtol=1e-9, M=M)
    assert info == 0 and X.shape == B.shape
    for i in range(3):
        assert np.array_equal(X[:, i], method(A, B[:, i], rtol=1e-9, M=M)[0])
    single, _ = method(A, B.astype(np.float32), rtol=1e-9, M=M)
    assert single.dtype == np.float64 and np.allclose(single, X, atol=1e-5)
    assert np.allclose(method(A, B.tolist(), rtol=1e-9, M=M)[0], X)
    assert method(A, B[:, :1])[0].shape == (n, 1)
    again, _ = method(A, B, x0=X, rtol=1e-8, M=M)
    assert np.array_equal(again, X)
    # The worst of the columns is told.
    zeros = np.zeros((n, 1))
    assert method(A, np.hstack([zeros, B]), maxiter=2)[1] == method(A, B, maxiter=2)[1] > 0
    for b, x0, name, words in [
        (np.ones((n, 0)), None, "b", "no right side"),
        (np.ones((n - 1, 2)), None, "b", "columns of"),
        (B, np.ones((n, 2)), "x0", "but b has"),
        (B, np.ones(n), "x0", "columns of"),
        (np.where(B == B[5, 2], np.nan, B), None, "b", "entry 5 of column 2"),
    ]:
        with pytest.raises(femtile.ArgumentError, match=words) as caught:
            method(A, b, x0)
        assert caught.value.argument == name


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"threads": -1}, "threads"),
        ({"maxiter": 2.5}, "maxiter"),
        ({"M": lambda r: r}, "M"),
        ({"A": laplacian(4)[:3]}, "A"),
        ({"b": np.ones(3)}, "b"),
        ({"b": np.full(16, np.inf)}, "b"),
        ({"x0": np.full(16, np.nan)}, "x0"),
        ({"M": np.eye(3)}, "M"),
        ({"rtol": 0.0}, "rtol"),
        ({"restart": 0}, "restart"),
        ({"callback_type": "x"}, "callback_type"),
        ({"A": np.eye(16) * 1j}, "A"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, argument):
    given = {"A": laplacian(4), "b": np.ones(16), **arguments}
    with pytest.raises(femtile.Error) as caught:
        femtile.gmres(**given)
    assert caught.value.argument == argument
