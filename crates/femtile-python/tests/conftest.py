"""Matrices and systems that several tests use."""

import numpy as np
import pytest
import scipy.sparse as sp

import femtile


def laplacian(n: int, dimension: int = 2) -> sp.csr_array:
    """The five- or seven-point Laplacian with n points a side."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = sp.eye_array(n)
    if dimension == 2:
        return sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line))
    plane = sp.kron(line, eye) + sp.kron(eye, line)
    return sp.csr_array(sp.kron(plane, eye) + sp.kron(sp.eye_array(n * n), line))


@pytest.fixture
def A() -> sp.csr_array:
    return laplacian(40)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.fixture(autouse=True)
def forget_copies() -> None:
    femtile._arrays._warned.clear()
