"""Arrays of other packages: those of the host are used, those of a GPU are refused by name."""

import numpy as np
import pytest
from conftest import laplacian

import femtile


class OnGpu:
    """An array of CuPy, as far as anyone asks."""

    __cuda_array_interface__ = {"shape": (4,), "typestr": "<f8", "data": (1, False), "version": 3}


class Tensor:
    """A tensor of PyTorch or JAX with a device number of DLPack."""

    def __init__(self, values, device):
        self.values, self.device = values, device

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **settings):
        return self.values.__dlpack__(**settings)

    def __array__(self, dtype=None, copy=None):
        assert self.device == 1, "the memory of a GPU was read"
        return self.values


def test_tensors_of_the_host_are_solved():
    ones = np.ones(4)
    tensors = [Tensor(x, 1) for x in (ones, 4 * ones, ones, ones)]
    assert np.array_equal(femtile.solve_tridiagonal(*tensors), femtile.solve_tridiagonal(ones, 4 * ones, ones, ones))
    solver = femtile.amg(laplacian(2))
    assert np.array_equal(solver.solve(Tensor(ones, 1)), solver.solve(ones))


@pytest.mark.parametrize("array", [OnGpu(), Tensor(None, 2), Tensor(None, 10)])
def test_arrays_on_a_gpu_are_refused_by_name(array):
    ones = np.ones(4)
    solver = femtile.amg(laplacian(2))
    calls = {
        "a": lambda: femtile.solve_tridiagonal(array, ones, ones, ones),
        "d": lambda: femtile.solve_tridiagonal(ones, ones, ones, array),
        "out": lambda: femtile.solve_tridiagonal(ones, 4 * ones, ones, ones, out=array),
        "b": lambda: solver.solve(array),
        "x0": lambda: solver.solve(ones, x0=array),
        "x": lambda: femtile.EllWarp(laplacian(2)) @ array,
        "A": lambda: femtile.amg(array),
        "near_nullspace": lambda: femtile.amg(laplacian(2), array),
    }
    for argument, call in calls.items():
        with pytest.raises(femtile.ArgumentTypeError, match="memory of a GPU") as caught:
            call()
        assert caught.value.argument == argument


def test_cupy_matrices_are_refused_by_name():
    class Sparse:
        data, dtype, shape = OnGpu(), np.dtype(float), (4, 4)

        def tocsr(self):
            return self

    with pytest.raises(femtile.ArgumentTypeError, match="A: lies in the memory of a GPU"):
        femtile.amg(Sparse())
