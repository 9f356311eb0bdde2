"""Algebraic multigrid against SciPy and PyAMG, and what it refuses."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from conftest import laplacian

import femtile


def test_the_solution_is_that_of_scipy(A, rng):
    b = rng.standard_normal(A.shape[0])
    x = femtile.amg(A).solve(b)
    assert np.allclose(x, spl.spsolve(A.tocsc(), b), rtol=1e-8, atol=1e-8)


def test_it_needs_no_more_iterations_than_pyamg(A):
    pyamg = pytest.importorskip("pyamg")
    b, residuals = np.ones(A.shape[0]), []
    solver = pyamg.smoothed_aggregation_solver(sp.csr_matrix(A))
    solver.solve(b, tol=1e-8, accel="cg", residuals=residuals)
    _, outcome = femtile.amg(A).solve(b, tol=1e-8, return_outcome=True)
    assert outcome.has_converged and outcome.iterations <= 1.5 * len(residuals)


def test_the_hierarchy_begins_with_the_matrix_and_shrinks(A):
    levels = femtile.amg(A).hierarchy
    assert levels[0] == (A.shape[0], A.nnz) and len(levels) > 1
    assert all(fine.rows > coarse.rows for fine, coarse in zip(levels, levels[1:], strict=False))


def test_a_good_guess_saves_iterations(A):
    solver, b = femtile.amg(A), np.ones(A.shape[0])
    x, cold = solver.solve(b, return_outcome=True)
    _, warm = solver.solve(b, x0=x, return_outcome=True)
    assert warm.iterations < cold.iterations
    assert cold.residuals[0] == 1 and len(cold.residuals) == cold.iterations + 1


def test_refill_solves_with_other_values_and_refuses_another_pattern(A, rng):
    solver, b = femtile.amg(A), rng.standard_normal(A.shape[0])
    scaled = A * 4.0
    solver.refill(scaled)
    assert np.allclose(scaled @ solver.solve(b), b, atol=1e-7)
    with pytest.raises(femtile.ArgumentError, match="another pattern") as caught:
        solver.refill(laplacian(40) + sp.eye_array(1600, k=7) + sp.eye_array(1600, k=-7))
    assert caught.value.argument == "A"
    assert np.allclose(scaled @ solver.solve(b), b, atol=1e-7)


def test_it_preconditions_methods_of_scipy_and_of_femtile(A):
    b, M, steps = np.ones(A.shape[0]), femtile.amg(A).aspreconditioner(), []
    x, info = spl.cg(A, b, M=M, rtol=1e-8, callback=lambda xk: steps.append(1))
    y, own = femtile.cg(A, b, M=M, rtol=1e-8)
    assert (info, own) == (0, 0) and len(steps) < 30
    assert np.allclose(x, y, atol=1e-5)


def test_rigid_motions_as_columns_are_the_near_nullspace():
    pyamg = pytest.importorskip("pyamg")
    A, B = pyamg.gallery.linear_elasticity((60, 60))
    A = sp.csr_array(A.tocsr())
    b = np.ones(A.shape[0])
    with_motions = femtile.amg(A, B, block_size=2).solve(b, return_outcome=True)[1]
    without = femtile.amg(A, block_size=2).solve(b, return_outcome=True)[1]
    assert with_motions.has_converged and with_motions.iterations < without.iterations
    with pytest.raises(femtile.ArgumentError, match="near_nullspace"):
        femtile.amg(A, B[:-1])


def test_several_right_sides_are_columns_of_one_call(A, rng):
    solver, b, x0 = femtile.amg(A), rng.standard_normal((1600, 3)), rng.standard_normal((1600, 3))
    x, outcomes = solver.solve(b, x0=x0, return_outcome=True)
    one_by_one = [solver.solve(b[:, i].copy(), x0=x0[:, i].copy(), return_outcome=True) for i in range(3)]
    assert (x == np.stack([column for column, _ in one_by_one], axis=1)).all()
    assert outcomes == [outcome for _, outcome in one_by_one]
    assert solver.solve(b[:, :1]).shape == (1600, 1)
    with pytest.warns(femtile.ConvergenceWarning, match="column 1 of b") as caught:
        solver.solve(np.stack([np.zeros(1600), b[:, 0]], axis=1), maxiter=1)
    assert len(caught) == 1


def test_blocks_of_a_matrix_in_bsr_are_the_rows_of_a_node(A):
    blocks = sp.csr_array(sp.kron(A, np.array([[2.0, 1.0], [1.0, 2.0]])))
    by_blocks = femtile.amg(blocks.tobsr((2, 2)))
    assert by_blocks.hierarchy == femtile.amg(blocks, block_size=2).hierarchy != femtile.amg(blocks).hierarchy
    assert femtile.amg(blocks.tobsr((2, 1))).hierarchy == femtile.amg(blocks).hierarchy
    assert femtile.amg(blocks.tobsr((2, 2)), block_size=1).hierarchy == femtile.amg(blocks).hierarchy


def test_a_pickle_has_the_matrix_and_the_settings(A, rng):
    solver, b = femtile.amg(A, rng.uniform(1, 2, (1600, 1)), smoother="jacobi", threads=1), np.ones(1600)
    again = pickle.loads(pickle.dumps(solver))
    assert again.hierarchy == solver.hierarchy and (again.solve(b) == solver.solve(b)).all()
    solver.refill(4 * A)
    assert np.allclose(4 * (A @ pickle.loads(pickle.dumps(solver)).solve(b)), b)


def test_a_callback_sees_the_residual_of_every_iteration(A):
    seen = []
    _, outcome = femtile.amg(A).solve(np.ones(1600), callback=seen.append, return_outcome=True)
    assert seen == outcome.residuals[1:] and len(seen) == outcome.iterations
    for matrix in (A, laplacian(60)):
        with pytest.raises(ZeroDivisionError):
            femtile.amg(matrix).solve(np.ones(matrix.shape[0]), callback=lambda residual: residual / 0)


def test_settings_of_case_files_are_keywords():
    A, b = laplacian(80), np.ones(6400)
    default = femtile.amg(A)
    n_default = default.solve(b, return_outcome=True)[1].residuals
    for settings in ({"smoother": "jacobi"}, {"smoother": "gauss-seidel"}, {"cycle": "k"}, {"strength": 0.2}):
        x, outcome = femtile.amg(A, **settings).solve(b, return_outcome=True)
        assert outcome.has_converged and outcome.residuals != n_default and np.allclose(A @ x, b)
    wide = femtile.amg(A, precision="f64")
    assert (wide.precondition(b) != default.precondition(b)).any()
    for name in ("smoother", "cycle", "precision"):
        with pytest.raises(femtile.ArgumentError, match=f"^{name}: .*magic") as caught:
            femtile.amg(A, **{name: "magic"})
        assert caught.value.argument == name


def test_a_solver_is_a_preconditioner_of_any_method(A):
    b, M, steps = np.ones(1600), femtile.amg(A), []
    for method in (spl.cg, femtile.cg, femtile.gmres):
        x, info = method(A, b, M=M, rtol=1e-8, callback=steps.append)
        assert info == 0 and np.linalg.norm(A @ x - b) <= 1e-7 * np.linalg.norm(b)
    assert len(steps) < 60 and ((M @ b) == M.precondition(b)).all()


@pytest.mark.parametrize("form", ["coo", "csc", "bsr", "lil", "dok", "dia"])
def test_any_format_of_scipy_is_taken(form):
    A = laplacian(10).asformat(form)
    assert np.allclose(laplacian(10) @ femtile.amg(A).solve(np.ones(100)), 1)


def test_duplicates_of_coo_are_summed_and_the_matrix_stays_as_it_is(A):
    coo = A.tocoo()
    twice = sp.coo_array((np.r_[coo.data, coo.data], (np.r_[coo.row, coo.row], np.r_[coo.col, coo.col])), A.shape)
    assert np.allclose(2 * (A @ femtile.amg(twice).solve(np.ones(1600))), 1)
    unsorted = A.copy()
    unsorted.indices[:2], unsorted.data[:2] = unsorted.indices[:2][::-1].copy(), unsorted.data[:2][::-1].copy()
    unsorted.has_sorted_indices = unsorted.has_canonical_format = False
    before = unsorted.indices.copy()
    assert np.allclose(A @ femtile.amg(unsorted).solve(np.ones(1600)), 1)
    assert (unsorted.indices == before).all()


def test_indices_of_64_bits_and_integers_as_values_are_taken():
    A = laplacian(10)
    wide = sp.csr_array((A.data.astype(np.int64), A.indices.astype(np.int64), A.indptr.astype(np.int64)), A.shape)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert np.allclose(A @ femtile.amg(wide).solve(np.ones(100, dtype=int)), 1)


def test_a_strided_vector_is_copied_with_one_warning(A):
    solver, wide = femtile.amg(A), np.ones((A.shape[0], 2))
    with pytest.warns(femtile.CopyWarning, match="^b is not contiguous") as caught:
        assert np.allclose(A @ solver.solve(wide[:, 0]), 1)
        solver.solve(wide[:, 1])
    assert len(caught) == 1


def bad_matrices():
    good = laplacian(5)
    lower = sp.csr_array(sp.tril(good))
    nan, negative = good.copy(), good.copy()
    nan.data[3] = np.nan
    negative.setdiag(-1.0)
    indefinite = sp.csr_array(good - 3.0 * sp.eye_array(25))
    error, wrong_type = femtile.ArgumentError, femtile.ArgumentTypeError
    return [
        (np.eye(3), wrong_type, "scipy.sparse.csr_array"),
        (good.astype(complex), wrong_type, "complex"),
        (good[:10], error, "10 × 25 is not square"),
        (sp.csr_array((0, 0)), error, "is empty"),
        (lower, error, "not symmetric"),
        (nan, error, "not a finite number"),
        (negative, femtile.NotDefiniteError, "positive"),
        (indefinite, femtile.NotDefiniteError, "definite"),
        (sp.csr_array(np.zeros((3, 3))), femtile.NotDefiniteError, "positive"),
    ]


@pytest.mark.parametrize(("matrix", "error", "message"), bad_matrices())
def test_a_bad_matrix_is_refused_by_name(matrix, error, message):
    with pytest.raises(error, match=message) as caught:
        femtile.amg(matrix).solve(np.ones(matrix.shape[0]))
    assert caught.value.argument == "A" and str(caught.value).startswith("A: ")


@pytest.mark.parametrize(
    ("b", "error", "message"),
    [
        (np.ones(24), femtile.ArgumentError, "b: 24 entries where 25 are needed"),
        (np.ones((5, 5)), femtile.ArgumentError, "b: has shape"),
        (np.ones(25) * 1j, femtile.ArgumentTypeError, "b: complex"),
        (np.array(["x"] * 25), femtile.ArgumentTypeError, "b: has dtype"),
        (np.full(25, np.nan), femtile.ArgumentError, "b: entry 0"),
        (np.ones((25, 0)), femtile.ArgumentError, "b: there is no right side"),
        (np.ones((25, 2, 1)), femtile.ArgumentError, "b: has shape"),
        (np.empty(0), femtile.ArgumentError, "b: 0 entries"),
    ],
)
def test_a_bad_right_side_is_refused_by_name(b, error, message):
    with pytest.raises(error, match=message) as caught:
        femtile.amg(laplacian(5)).solve(b)
    assert caught.value.argument == "b"


def test_bad_settings_are_refused_by_name():
    A, b = laplacian(5), np.ones(25)
    for settings in [{"device": "tpu"}, {"strength": 2.0}, {"block_size": 0}, {"threads": -1}, {"threads": 2**70}]:
        with pytest.raises(femtile.ArgumentError) as caught:
            femtile.amg(A, **settings)
        assert caught.value.argument == next(iter(settings))
    with pytest.raises(femtile.ArgumentTypeError, match="threads: a whole number"):
        femtile.amg(A, threads=1.5)
    for settings in [
        {"tol": 0.0},
        {"tol": 2.0},
        {"maxiter": -1},
        {"x0": np.ones(3)},
        {"x0": np.ones((25, 2))},
        {"time_limit": -1.0},
    ]:
        with pytest.raises(femtile.ArgumentError) as caught:
            femtile.amg(A).solve(b, **settings)
        assert caught.value.argument == next(iter(settings))


def test_a_gpu_that_is_absent_is_an_error_of_its_own():
    try:
        femtile.amg(laplacian(5), device="cuda:7")
    except femtile.DeviceError as error:
        assert "cuda" in str(error).lower() or "gpu" in str(error).lower()
    else:
        pytest.skip("there are eight GPUs")


def test_not_converging_gives_a_warning_or_an_outcome(A):
    solver, b = femtile.amg(A), np.ones(A.shape[0])
    with pytest.warns(femtile.ConvergenceWarning, match="limit of iterations"):
        solver.solve(b, maxiter=2)
    assert solver.solve(b, maxiter=2, return_outcome=True)[1].stop == "max_iterations"
