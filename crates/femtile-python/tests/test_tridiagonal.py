"""Batches of tridiagonal systems against NumPy."""

import numpy as np
import pytest
from scipy.linalg import solve_banded

import femtile


def systems(shape, axis, rng, dtype=np.float64, order="C"):
    """Diagonally dominant bands and right sides."""
    a, c, d = (np.asarray(rng.uniform(-1, 1, shape).astype(dtype), order=order) for _ in range(3))
    return a, np.asarray((4 + a).astype(dtype), order=order), c, d


def residual(a, b, c, d, u, axis, periodic=False):
    a, b, c, d, u = (np.moveaxis(np.asarray(x, dtype=np.float64), axis, -1) for x in (a, b, c, d, u))
    below, above = np.roll(u, 1, -1), np.roll(u, -1, -1)
    if not periodic:
        below[..., 0] = above[..., -1] = 0
    return np.abs(a * below + b * u + c * above - d).max()


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (5, 9), (3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 2, 5)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_axis_and_order_is_solved(shape, order, dtype, rng):
    for axis in range(-len(shape), len(shape)):
        a, b, c, d = systems(shape, axis, rng, dtype, order)
        u = femtile.solve_tridiagonal(a, b, c, d, axis)
        assert u.dtype == dtype and u.shape == shape
        assert residual(a, b, c, d, u, axis) < (1e-5 if dtype == np.float32 else 1e-13)


def test_the_solution_is_that_of_scipy(rng):
    a, b, c, d = systems((50,), 0, rng)
    bands = np.stack([np.r_[0, c[:-1]], b, np.r_[a[1:], 0]])
    assert np.allclose(femtile.solve_tridiagonal(a, b, c, d), solve_banded((1, 1), bands, d))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rings_are_solved(axis, rng):
    a, b, c, d = systems((6, 7, 8), axis, rng)
    u = femtile.solve_tridiagonal(a, b, c, d, axis, periodic=True)
    assert residual(a, b, c, d, u, axis, periodic=True) < 1e-13


@pytest.mark.filterwarnings("ignore::femtile.CopyWarning")
def test_one_matrix_serves_all_systems(rng):
    a, b, c, _ = systems((9,), 0, rng)
    d = rng.standard_normal((4, 9, 3))
    u = femtile.solve_tridiagonal(a, b, c, d, axis=1)
    fitted = [np.broadcast_to(x[:, None], d.shape) for x in (a, b, c)]
    assert residual(*fitted, d, u, 1) < 1e-13
    mixed = femtile.solve_tridiagonal(a, fitted[1], np.float64(0.5), d, axis=1)
    assert residual(fitted[0], fitted[1], np.full(d.shape, 0.5), d, mixed, 1) < 1e-13


def test_contiguous_arrays_are_solved_without_a_copy_or_in_place(rng):
    a, b, c, d = systems((20, 30), 1, rng)
    expected, out = femtile.solve_tridiagonal(a, b, c, d), np.full_like(d, np.nan)
    before = d.copy()
    assert femtile.solve_tridiagonal(a, b, c, d, out=out) is out
    assert (out == expected).all() and (d == before).all()
    assert femtile.solve_tridiagonal(a, b, c, d, out=d) is d
    assert (d == expected).all()
    _, b, _, d = systems((20, 30), 1, rng)
    expected = femtile.solve_tridiagonal(a, b, c, d)
    assert (femtile.solve_tridiagonal(a, b, c, d, out=b) == expected).all()


@pytest.mark.filterwarnings("ignore::femtile.CopyWarning")
def test_strided_arrays_are_copied_with_one_warning(rng):
    a, b, c, d = (x[:, ::2] for x in systems((6, 18), 1, rng))
    with pytest.warns(femtile.CopyWarning, match="^d is not contiguous"):
        u = femtile.solve_tridiagonal(a, b, c, d)
    assert residual(a, b, c, d, u, 1) < 1e-13


def test_exchanged_rows_solve_where_pivots_vanish():
    a, b, c = np.ones(4), np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4)
    u = femtile.solve_tridiagonal(a, b, c, np.arange(1.0, 5.0), pivoting=True)
    assert residual(a, b, c, np.arange(1.0, 5.0), u, 0) < 1e-13


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_system_that_fails_is_named_and_the_others_are_solved(value, rng):
    a, b, c, d = systems((5, 6), 1, rng)
    out, b[3] = np.empty_like(d), value
    with pytest.raises(femtile.SingularError, match=r"1 of the systems .* index \(3, 0\)") as caught:
        femtile.solve_tridiagonal(a, b, c, d, out=out)
    assert isinstance(caught.value, np.linalg.LinAlgError)
    good = [0, 1, 2, 4]
    assert np.isnan(out[3]).all() and residual(a[good], b[good], c[good], d[good], out[good], 1) < 1e-13


def test_integers_and_mixed_arrays_are_solved_in_the_wider_precision():
    d = np.arange(1, 6)
    for arrays, dtype in [
        ((-1, 2, -1, d), np.float64),
        ((-1, 2, -1, d.astype(np.float32)), np.float32),
        ((-1.0, 2 * np.ones(5, dtype="f"), -1, d.astype(np.float32)), np.float32),
        ((-1, 2 * np.ones(5), -1, d.astype(np.float32)), np.float64),
        ((-np.ones(5, dtype=bool).astype(int), 2, -1, d.astype(np.float32)), np.float64),
    ]:
        u = femtile.solve_tridiagonal(*arrays)
        assert u.dtype == dtype and residual(*(np.broadcast_to(x, (5,)) for x in arrays), u, 0) < 1e-5
    eye, ones = np.eye(2, dtype=int), np.ones((3, 2), dtype="f")
    u = femtile.solve_block_tridiagonal(-eye[None], [2 * eye] * 3, -eye[None], ones)
    assert u.dtype == np.float64 and np.allclose(u[:, 0], [1.5, 2, 1.5])


def test_vectors_lie_along_the_axis_and_other_shapes_are_broadcast(rng):
    a, b, c, d = systems((4, 4), 0, rng)
    u = femtile.solve_tridiagonal(a[0], b[0], c[0], d, axis=0)
    assert residual(*(np.broadcast_to(x[0][:, None], (4, 4)) for x in (a, b, c)), d, u, 0) < 1e-13
    u = femtile.solve_tridiagonal(a, b, c, d[0], axis=0)
    assert residual(a, b, c, np.broadcast_to(d[0][:, None], (4, 4)), u, 0) < 1e-13
    u = femtile.solve_tridiagonal(a[:1], b, c[:, :1], d)
    assert residual(np.broadcast_to(a[:1], (4, 4)), b, np.broadcast_to(c[:, :1], (4, 4)), d, u, 1) < 1e-13
    with pytest.raises(femtile.ArgumentError, match=r"a: has shape \(5,\)"):
        femtile.solve_tridiagonal(np.ones(5), 2, 1, np.ones((3, 5)), axis=0)


def test_batches_without_systems_or_rows_have_empty_solutions():
    for shape in [(0, 5), (3, 0), (0,), (0, 4, 2)]:
        assert femtile.solve_tridiagonal(-1.0, 2.0, -1.0, np.empty(shape)).shape == shape
    assert femtile.solve_block_tridiagonal(*[np.empty((0, 3, 2, 2))] * 3, np.empty((0, 3, 2))).shape == (0, 3, 2)


def test_advice_is_what_may_help():
    ones, zero_first = np.ones(3), np.array([0.0, 2.0, 2.0])
    with pytest.raises(femtile.SingularError, match="periodic systems are not exchanged"):
        femtile.solve_tridiagonal(ones, zero_first, ones, ones, periodic=True)
    with pytest.raises(femtile.SingularError, match="pivoting=True"):
        femtile.solve_tridiagonal(ones, zero_first, ones, ones)
    with pytest.raises(femtile.SingularError, match="check that row$"):
        femtile.solve_tridiagonal(0.0, 0.0, 0.0, ones, pivoting=True)


def bad_calls():
    ones, read_only = np.ones((3, 4)), np.ones((3, 4))
    read_only.flags.writeable = False
    value, kind = femtile.ArgumentError, femtile.ArgumentTypeError
    return [
        ({"d": ones.astype(np.float16)}, kind, "d: has dtype float16; float32 or float64"),
        ({"d": ones * 1j}, kind, "d: complex"),
        ({"c": ones * 1j}, kind, "c: complex"),
        ({"b": np.ones((4, 3))}, value, "b: has shape"),
        ({"d": 1.0, "a": 1.0, "b": 1.0, "c": 1.0}, value, "d: all arrays are numbers"),
        ({"threads": -1}, value, "threads: -1 is less than 0; 0 takes all cores"),
        ({"axis": 2}, value, "axis: there is no axis 2"),
        ({"out": read_only}, value, "out: is read-only"),
        ({"out": np.ones((4, 3))}, value, "out: has shape"),
        ({"out": np.ones((3, 4), dtype=np.float32)}, kind, "out: has dtype"),
        ({"out": np.ones((3, 4), order="F")}, value, "out: is not contiguous in the order of d"),
        ({"out": [1.0]}, kind, "out: an array of NumPy"),
        ({"d": np.ones((3, 4)).astype(object)}, kind, "d: has dtype object"),
    ]


@pytest.mark.parametrize(("arguments", "error", "message"), bad_calls())
def test_bad_arguments_are_refused_by_name(arguments, error, message):
    ones = np.ones((3, 4))
    given = {"a": ones, "b": 4 * ones, "c": ones, "d": ones, **arguments}
    with pytest.raises(error, match=message) as caught:
        femtile.solve_tridiagonal(**given)
    assert caught.value.argument == message.split(":")[0]


@pytest.mark.parametrize("block", [2, 3, 10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_block_systems_are_those_of_dense_matrices(block, dtype, rng):
    n, shape = 6, (3, 6, block, block)
    A, C = (rng.uniform(-1, 1, shape).astype(dtype) for _ in range(2))
    B = (rng.uniform(-1, 1, shape) + 4 * block * np.eye(block)).astype(dtype)
    d = rng.standard_normal(shape[:-1]).astype(dtype)
    u = femtile.solve_block_tridiagonal(A, B, C, d)
    for i in range(3):
        dense = np.zeros((n, block, n, block))
        for k in range(n):
            dense[k, :, k] = B[i, k]
            if k > 0:
                dense[k, :, k - 1] = A[i, k]
            if k < n - 1:
                dense[k, :, k + 1] = C[i, k]
        expected = np.linalg.solve(dense.reshape(n * block, -1), d[i].reshape(-1).astype(float))
        assert np.allclose(u[i].reshape(-1), expected, rtol=1e-4 if dtype == np.float32 else 1e-11, atol=1e-6)
    assert femtile.solve_block_tridiagonal(A, B, C, d, out=d) is d and (d == u).all()


def test_bad_blocks_are_refused_by_name():
    eye = np.broadcast_to(np.eye(2), (3, 2, 2))
    for arguments, argument in [
        ({"A": np.ones((3, 2, 3))}, "A"),
        ({"d": np.ones(3)}, "d"),
        ({"d": np.ones((3, 2)) * 1j}, "d"),
        ({k: np.ones((3, 11, 11)) for k in "ABC"} | {"d": np.ones((3, 11))}, "block"),
    ]:
        with pytest.raises(femtile.Error) as caught:
            femtile.solve_block_tridiagonal(**{"A": eye, "B": eye, "C": eye, "d": np.ones((3, 2)), **arguments})
        assert caught.value.argument == argument
    with pytest.raises(femtile.SingularError):
        femtile.solve_block_tridiagonal(eye, 0 * eye, eye, np.ones((3, 2)))
