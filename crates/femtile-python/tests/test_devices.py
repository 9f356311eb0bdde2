"""Arrays of other packages: those of the host are used where they lie, those of a GPU go to that GPU or are refused by name.

The tensors of a GPU here have their values on the host; what the GPU would do with their addresses, the host does.
"""

import ctypes
import sys
import types

import numpy as np
import pytest
from conftest import laplacian

import femtile
from femtile import _femtile
from femtile._gpu import streams, view

ONES = np.ones(4)


class Tensor:
    """A tensor of PyTorch or JAX with a device of DLPack."""

    def __init__(self, values, kind=2, number=0):
        self.values, self.device = values, (kind, number)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        if self.device[0] == 2:
            assert stream == 77, "the package is told of our stream"
        return self.values.__dlpack__(**({} if max_version is None else {"max_version": max_version}))


class OldTensor(Tensor):
    """A tensor of a package from before DLPack 1.0."""

    def __dlpack__(self, *, stream=None):
        return super().__dlpack__(stream=stream)


class OnGpu:
    """An array of Numba: an interface without DLPack."""

    def __init__(self, shape=(4,), **interface):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": "<f8", "data": (4096, False), "version": 3, **interface
        }  # fmt: skip


def host(address, n, single):
    kind = ctypes.c_float if single else ctypes.c_double
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(kind)), (n,))


@pytest.fixture
def gpu(monkeypatch):
    """A GPU whose memory and arithmetic are those of the host; returns what it was asked to order."""
    asked = []

    def solve(ordinal, addresses, layout, batch, order):
        bands, d, u, single = addresses
        shape, is_shared, *_ = batch
        n = int(np.prod(shape))
        bands = [host(band, shape[1] if is_shared else n, single) for band in bands]
        made = np.empty(n, np.float32 if single else np.float64) if u is None else host(u, n, single)
        d = None if d is None else host(d, n, single)
        asked.append(order)
        failure = _femtile_solve(bands, d, made, batch, 1)
        if u is not None:
            return None, failure
        sizes, steps = layout
        return np.lib.stride_tricks.as_strided(made, sizes, [step * made.itemsize for step in steps]), failure

    _femtile_solve = _femtile.solve_tridiagonal
    monkeypatch.setattr(_femtile, "gpu_stream", lambda ordinal: 77)
    monkeypatch.setattr(_femtile, "solve_tridiagonal_on_gpu", solve)
    return asked


@pytest.mark.parametrize("kind", [1, 3])
def test_tensors_of_the_host_are_used_where_they_lie(kind):
    tensors = [Tensor(x, kind) for x in (ONES, 4 * ONES, ONES, ONES)]
    expected = femtile.solve_tridiagonal(ONES, 4 * ONES, ONES, ONES)
    assert np.array_equal(femtile.solve_tridiagonal(*tensors), expected)
    assert np.shares_memory(femtile._arrays.on_host("a", tensors[0]), ONES)
    solver = femtile.amg(laplacian(2))
    assert np.array_equal(solver.solve(tensors[0]), solver.solve(ONES))
    matrix, out = femtile.EllWarp(laplacian(2)), np.zeros(4)
    assert matrix.apply(tensors[0], out) is out and np.array_equal(out, matrix @ ONES)


def test_results_are_of_the_kind_of_their_package(monkeypatch):
    class Package:
        @staticmethod
        def from_dlpack(array):
            return Tensor(np.from_dlpack(array), 1)

    monkeypatch.setattr(Tensor, "__array_namespace__", lambda self: Package, raising=False)
    given = Tensor(ONES, 1)
    for found in (
        femtile.solve_tridiagonal(given, 4 * ONES, ONES, given),
        femtile.EllWarp(laplacian(2)) @ given,
        femtile.amg(laplacian(2)).solve(given),
    ):
        assert isinstance(found, Tensor) and found.values.shape == (4,)


@pytest.mark.parametrize("tensor", [Tensor, OldTensor])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arrays_of_a_gpu_reach_it_with_their_axes_and_orders(gpu, rng, tensor, dtype, order, axis):
    a, c, d = (np.array(rng.uniform(-1, 1, (4, 6, 8)), dtype, order=order) for _ in range(3))
    b = np.array(4 + a, dtype, order=order)
    expected = femtile.solve_tridiagonal(a, b, c, d, axis=axis)
    u = femtile.solve_tridiagonal(*map(tensor, (a, b, c, d)), axis=axis)
    assert u.flags[f"{order}_CONTIGUOUS"] and np.array_equal(u, expected)
    out = tensor(np.zeros_like(d, order="K"))
    assert femtile.solve_tridiagonal(*map(tensor, (a, b, c, d)), axis=axis, out=out) is out
    assert np.array_equal(out.values, expected)
    right = tensor(d)
    assert femtile.solve_tridiagonal(tensor(a), tensor(b), tensor(c), right, axis=axis, out=right) is right
    assert np.array_equal(right.values, expected)
    n = d.shape[axis]
    shared = [np.linspace(0.1, 0.5, n, dtype=dtype) for _ in range(3)]
    shared[1] += 3
    expected = femtile.solve_tridiagonal(*shared, c, axis=axis)
    assert np.array_equal(femtile.solve_tridiagonal(*map(tensor, shared), tensor(c), axis=axis), expected)
    assert all(order == ([], None) for order in gpu), "the host waits for packages that do not tell their stream"


def test_a_singular_system_of_a_gpu_is_named(gpu):
    b = np.ones((3, 4))
    b[1, 2] = 0
    zeros = np.zeros((3, 4))
    with pytest.raises(femtile.SingularError, match=r"index \(1, 2\)"):
        femtile.solve_tridiagonal(Tensor(zeros), Tensor(b), Tensor(zeros), Tensor(np.ones((3, 4))))


def test_streams_of_packages_come_before_and_after():
    def seen(stream, owner):
        return femtile._gpu.View("a", 4096, (1,), (1,), np.dtype(float), 0, False, stream, owner)

    assert streams([seen(5, None), seen(1, "dlpack"), seen(5, "dlpack")]) == ([5], [1, 5])
    assert streams([seen(5, "dlpack"), seen(None, None)]) == ([], None)


def refused(arguments, **settings):
    given = {name: Tensor(x) for name, x in {"a": ONES, "b": 4 * ONES, "c": ONES.copy(), "d": ONES.copy()}.items()}
    return lambda: femtile.solve_tridiagonal(**{**given, **arguments}, **settings)


@pytest.mark.parametrize(
    ("arguments", "argument", "said"),
    [
        ({"a": ONES}, "a", "memory of the host"),
        ({"c": Tensor(ONES, 1)}, "c", "memory of the host"),
        ({"b": Tensor(ONES, 2, 1)}, "b", "lies on GPU 1, d on GPU 0"),
        ({"a": Tensor(ONES.astype(np.float32))}, "a", "dtype float32, but d has float64"),
        ({"d": Tensor(np.ones(4, int))}, "d", "float32 or float64 is needed"),
        ({"d": Tensor(ONES * 1j)}, "d", "complex numbers"),
        ({"a": Tensor(np.ones(5))}, "a", r"shape \(5,\)"),
        ({"d": Tensor(np.ones(8)[::2])}, "d", "not contiguous"),
        ({"d": Tensor(np.ones(0))}, "d", "empty"),
        ({"c": Tensor(np.ones(8)[::2])}, "c", "not contiguous"),
        ({"out": np.ones(4)}, "out", "memory of the host"),
        ({"out": Tensor(np.ones(4, np.float32))}, "out", "dtype float32"),
        ({"out": Tensor(np.ones(6))}, "out", "shape"),
        ({"axis": 1}, "axis", "no axis 1"),
    ],
)
def test_wrong_arrays_of_a_gpu_are_refused_by_name(gpu, arguments, argument, said):
    with pytest.raises(femtile.Error, match=said) as caught:
        refused(arguments)()
    assert caught.value.argument == argument and not gpu


def test_arrays_that_share_memory_with_the_solution_are_refused_by_name(gpu):
    memory = np.ones(12)
    begin = (-memory.ctypes.data // 8) % 2
    whole, later = memory[begin : begin + 8], memory[begin + 2 : begin + 10]
    ones = {name: Tensor(np.ones(8)) for name in "abcd"}
    with pytest.raises(femtile.ArgumentError, match="shares memory with a"):
        femtile.solve_tridiagonal(**{**ones, "a": Tensor(whole)}, out=Tensor(later))
    with pytest.raises(femtile.ArgumentError, match="overlaps d"):
        femtile.solve_tridiagonal(**{**ones, "d": Tensor(whole)}, out=Tensor(later))
    odd = memory[1 - begin : 9 - begin]
    with pytest.raises(femtile.ArgumentError, match="multiple of 16 bytes"):
        femtile.solve_tridiagonal(**{**ones, "b": Tensor(odd)})
    assert not gpu


def test_read_only_arrays_are_refused_as_out_by_name(gpu, monkeypatch):
    target = Tensor(np.ones(4))
    monkeypatch.setattr(target, "__cuda_array_interface__", {"data": (target.values.ctypes.data, True)}, raising=False)
    with pytest.raises(femtile.ArgumentError, match="out: is read-only"):
        refused({"out": target})()
    assert not gpu


def test_packages_that_do_not_export_are_named():
    class Tracked(Tensor):
        def __dlpack__(self, **settings):
            raise BufferError("it requires a gradient")

    with pytest.raises(femtile.ArgumentTypeError, match="x: its package does not export it: it requires a gradient"):
        view("x", Tracked(ONES), 0, 77)
    with pytest.raises(femtile.ArgumentTypeError, match="x: its package does not export it"):
        view("x", type("Odd", (Tensor,), {"__dlpack__": lambda self, **_: "no capsule"})(ONES), 0, 77)


def test_a_capsule_is_taken_once():
    capsule = np.ones((2, 3)).__dlpack__()
    address, shape, *_ = _femtile.Imported(capsule).description()
    assert shape == [2, 3] and address != 0
    with pytest.raises(BufferError):
        _femtile.Imported(capsule)


@pytest.mark.parametrize("array", [OnGpu(), Tensor(ONES), Tensor(ONES, 10)])
def test_arrays_on_a_gpu_are_refused_by_name_where_the_host_computes(array):
    solver = femtile.amg(laplacian(2), device="cpu")
    calls = {
        "a": lambda: femtile.solve_tridiagonal(array, ONES, ONES, ONES),
        "out": lambda: femtile.solve_tridiagonal(ONES, 4 * ONES, ONES, ONES, out=array),
        "b": lambda: solver.solve(array),
        "x0": lambda: solver.solve(ONES, x0=array),
        "x": lambda: femtile.EllWarp(laplacian(2)) @ array,
        "A": lambda: femtile.amg(array),
        "near_nullspace": lambda: femtile.amg(laplacian(2), array),
        "d": lambda: femtile.solve_block_tridiagonal(ONES, ONES, ONES, array),
    }
    for argument, call in calls.items():
        with pytest.raises(femtile.ArgumentTypeError, match="memory of a GPU|NumPy is needed") as caught:
            call()
        assert caught.value.argument == argument


def test_interfaces_that_cannot_be_used_are_refused_by_name():
    for interface, said in [({"mask": OnGpu()}, "masked"), ({"strides": (12,)}, "no multiples of an entry")]:
        with pytest.raises(femtile.Error, match=said):
            view("x", OnGpu(**interface), 0, 77)


def test_devices_are_refused_by_name():
    for device in ("gpu", "cuda:x", "cuda:", "cpu:0"):
        with pytest.raises(femtile.ArgumentError, match="device") as caught:
            femtile.EllWarp(laplacian(2), device=device)
        assert caught.value.argument == "device"


def test_cupy_matrices_are_refused_by_name():
    class Sparse:
        data, dtype, shape = OnGpu(), np.dtype(float), (4, 4)

        def tocsr(self):
            return self

    with pytest.raises(femtile.ArgumentTypeError, match="A: lies in the memory of a GPU"):
        femtile.amg(Sparse())


@pytest.fixture
def torch(monkeypatch):
    """The part of PyTorch by which its tensors are told from others and seen as memory."""
    stream = types.SimpleNamespace(cuda_stream=0)
    package = types.SimpleNamespace(
        float32="float32", float64="float64", strided="strided", cuda=types.SimpleNamespace(current_stream=lambda gpu: stream)
    )
    monkeypatch.setitem(sys.modules, "torch", package)

    def tensor(values, **attributes):
        steps = tuple(step // values.itemsize for step in values.strides)
        kind = type("Tensor", (), {"__module__": "torch", "__dlpack__": lambda self, **_: refuse(), "shape": values.shape})
        made = kind()
        made.values, made.dtype, made.layout, made.is_cuda, made.requires_grad = values, values.dtype.name, "strided", True, False
        made.get_device, made.is_neg = lambda: 0, lambda: False
        made.data_ptr, made.stride = lambda: values.ctypes.data, lambda: steps
        vars(made).update(attributes)
        return made

    def refuse():
        raise BufferError("it is not exported")

    return tensor


def test_tensors_of_pytorch_are_seen_without_an_exchange(gpu, torch, rng):
    a, c, d = (rng.uniform(-1, 1, (5, 8)) for _ in range(3))
    out = torch(np.zeros_like(d))
    assert femtile.solve_tridiagonal(*map(torch, (a, 4 + a, c, d)), out=out) is out
    assert np.array_equal(out.values, femtile.solve_tridiagonal(a, 4 + a, c, d))
    assert gpu == [([1], [1])], "its stream comes before, and goes on afterwards"


@pytest.mark.parametrize(
    "attributes", [{"requires_grad": True}, {"layout": "sparse"}, {"dtype": "float16"}, {"is_neg": lambda: True}]
)
def test_other_tensors_of_pytorch_are_left_to_their_export(gpu, torch, attributes):
    tensors = [torch(np.ones((3, 4))) for _ in range(4)]
    tensors[1] = torch(np.ones((3, 4)), **attributes)
    with pytest.raises(femtile.ArgumentTypeError, match="b: its package does not export it: it is not exported"):
        femtile.solve_tridiagonal(*tensors)


def test_a_tensor_of_pytorch_on_another_gpu_is_named(gpu, torch):
    tensors = [torch(np.ones((3, 4))) for _ in range(4)]
    tensors[2].get_device = lambda: 1
    with pytest.raises(femtile.ArgumentError, match="c: lies on GPU 1, d on GPU 0"):
        femtile.solve_tridiagonal(*tensors)
