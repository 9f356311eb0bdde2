"""Products in ELL-WARP against SciPy."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from conftest import laplacian

import femtile


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (5, 7), (301, 299), (1000, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_scipy(shape, dtype, rng):
    A = sp.random_array(shape, density=0.3, rng=rng, dtype=dtype, format="csr")
    x = rng.standard_normal(shape[1]).astype(dtype)
    y = femtile.EllWarp(A) @ x
    assert y.dtype == dtype
    assert np.allclose(y, A @ x, rtol=1e-5 if dtype == np.float32 else 1e-13, atol=1e-6)


def test_columns_of_a_matrix_are_multiplied_one_by_one(rng):
    A, X = laplacian(10), rng.standard_normal((100, 3))
    assert np.allclose(femtile.EllWarp(A) @ X, A @ X)
    assert (femtile.EllWarp(A) @ np.empty((100, 0))).shape == (100, 0)


def test_it_is_an_operator_of_scipy_and_has_a_pickle(A):
    matrix, b = femtile.EllWarp(A), np.ones(1600)
    x, info = spl.cg(matrix, b, rtol=1e-10)
    assert info == 0 and np.allclose(A @ x, b)
    assert (pickle.loads(pickle.dumps(matrix)) @ b == matrix @ b).all()


def test_bad_vectors_are_refused_by_name():
    matrix = femtile.EllWarp(laplacian(4))
    for x in (np.ones(15), np.ones((4, 4)), np.ones(16) * 1j, np.ones((16, 1, 1))):
        with pytest.raises(femtile.Error) as caught:
            matrix @ x
        assert caught.value.argument == "x"
