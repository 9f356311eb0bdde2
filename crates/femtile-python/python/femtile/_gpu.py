"""Arrays of CuPy, PyTorch, JAX and others in the memory of a GPU, taken and returned without a copy."""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from . import _femtile
from ._errors import ArgumentError, ArgumentTypeError

#: Kinds of devices of DLPack: the host, its pinned memory, GPUs of NVIDIA with plain and with managed memory.
HOST, PINNED, CUDA, MANAGED = 1, 3, 2, 13

#: The alignment in bytes that kernels rely on.
ALIGNMENT = 16

#: Streams whose work comes before, and those that go on afterwards; none where these are not known.
Streams = tuple[list[int], list[int] | None]


class View(NamedTuple):
    """An array of another package, seen as memory; strides count entries."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    gpu: int
    is_read_only: bool
    stream: int | None
    owner: Any

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """The address after the last entry of a contiguous array."""
        return self.address + self.size * self.dtype.itemsize

    @property
    def is_c(self) -> bool:
        """Whether entries follow one another in the order of C."""
        return self.strides == contiguous(self.shape) or self.size <= 1

    @property
    def is_fortran(self) -> bool:
        """Whether entries follow one another in the order of Fortran."""
        return self.strides[::-1] == contiguous(self.shape[::-1]) or self.size <= 1

    def overlaps(self, other: View) -> bool:
        """Return whether two contiguous arrays share memory."""
        return self.address < other.end and other.address < self.end


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array in the order of C, in entries."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def is_on_gpu(value: Any) -> bool:
    """Return whether an array lies in the memory of an NVIDIA GPU."""
    if type(value) is np.ndarray:
        return False
    if _is_tensor(value):
        return bool(value.is_cuda)
    device = getattr(value, "__dlpack_device__", None)
    if device is not None:
        return device()[0] in (CUDA, MANAGED)
    return hasattr(value, "__cuda_array_interface__")


def gpu_number(name: str, value: Any) -> int:
    """Return the number of the GPU that holds an array."""
    if not is_on_gpu(value):
        message = f"{name}: lies in the memory of the host, other arrays in that of a GPU; move it there"
        raise ArgumentTypeError(message, name)
    if _is_tensor(value):
        return int(value.get_device())
    device = getattr(value, "__dlpack_device__", None)
    if device is not None:
        return int(device()[1])
    interface = value.__cuda_array_interface__
    _interface(name, interface)
    found = _femtile.gpu_of(interface["data"][0])
    if found is None:
        raise ArgumentError(f"{name}: the driver knows no memory of a GPU at its address", name)
    return found


def view(name: str, value: Any, gpu: int, stream: int) -> View:
    """Return an array of a GPU as memory, and let our stream wait for the work that makes it.

    `gpu` is the number of the GPU that is expected, `stream` the handle of our stream there.
    """
    number = gpu_number(name, value)
    if number != gpu:
        raise ArgumentError(f"{name}: lies on GPU {number}, other arrays on GPU {gpu}; move it there", name)
    found = _of_tensor(name, value, gpu) if _is_tensor(value) else _in_known_stream(name, value, gpu)
    if found is None:
        found = _by_dlpack(name, value, gpu, stream) if hasattr(value, "__dlpack__") else _by_interface(name, value, gpu)
    if found.dtype not in (np.float32, np.float64):
        kind = "complex numbers" if found.dtype.kind == "c" else "numbers"
        raise ArgumentTypeError(f"{name}: has {kind} of dtype {found.dtype}; float32 or float64 is needed", name)
    if found.size and found.address % ALIGNMENT:
        message = f"{name}: begins at an address that is no multiple of {ALIGNMENT} bytes, as a part of an array may; copy it"
        raise ArgumentError(message, name)
    return found


def require_contiguous(found: View, is_fine: bool, order: str = "in the order of C or Fortran") -> None:
    """Refuse an array whose entries do not follow one another."""
    if not is_fine:
        message = f"{found.name}: is not contiguous {order}; cupy.ascontiguousarray or Tensor.contiguous makes it so"
        raise ArgumentError(message, found.name)


def require_writable(name: str, value: Any, found: View) -> None:
    """Refuse an array for a solution that is not to be written."""
    interface = getattr(value, "__cuda_array_interface__", None)
    is_immutable = type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
    if found.is_read_only or is_immutable or (interface is not None and interface["data"][1]):
        raise ArgumentError(f"{name}: is read-only", name)


def streams(views: list[View]) -> Streams:
    """Return the streams to wait for before work, and those that wait afterwards."""
    known = [found.stream for found in views]
    # DLPack has let our stream wait already.
    before = {found.stream for found in views if found.owner is None and found.stream is not None}
    after = None if any(stream is None for stream in known) else sorted({s for s in known if s is not None})
    return sorted(before), after


def like(model: Any, result: Any) -> Any:
    """Return an array of the kind of `model` in the memory of `result`."""
    package = type(model).__module__.partition(".")[0]
    if package == "numpy":
        return result
    namespace = getattr(model, "__array_namespace__", None)
    found = namespace() if namespace is not None else sys.modules.get(package)
    from_dlpack = getattr(found, "from_dlpack", None)
    return result if from_dlpack is None else from_dlpack(result)


def _is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor of PyTorch itself, whose attributes take less time than an exchange by DLPack."""
    kind = type(value)
    return kind.__name__ == "Tensor" and kind.__module__ == "torch"


def _of_tensor(name: str, value: Any, gpu: int) -> View | None:
    """Return a tensor of PyTorch as memory; none where its export has to say what is the matter with it."""
    torch = sys.modules["torch"]
    dtypes: dict[Any, np.dtype[Any]] = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}
    dtype = dtypes.get(value.dtype)
    if dtype is None or value.requires_grad or value.layout is not torch.strided or value.is_neg():
        return None
    stream = _stream(value, gpu)
    return View(name, value.data_ptr(), tuple(value.shape), value.stride(), dtype, gpu, False, stream, None)


def _in_known_stream(name: str, value: Any, gpu: int) -> View | None:
    """Return an array whose interface names its stream, as those of CuPy do; none of others."""
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None or interface.get("stream") is None:
        return None
    return _by_interface(name, value, gpu, interface)


def _by_dlpack(name: str, value: Any, gpu: int, stream: int) -> View:
    try:
        try:
            capsule = value.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:
            # A package from before DLPack 1.0.
            capsule = value.__dlpack__(stream=stream)
        owner = _femtile.Imported(capsule)
    except (BufferError, RuntimeError, ValueError) as error:
        raise ArgumentTypeError(f"{name}: its package does not export it: {error}", name) from None
    address, shape, strides, (code, bits, lanes), _, is_read_only = owner.description()
    kind = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}.get(code)
    if kind is None or lanes != 1 or bits % 8:
        raise ArgumentTypeError(f"{name}: has numbers of another kind; float32 or float64 is needed", name)
    dtype = np.dtype(bool) if kind == "b" else np.dtype(f"{kind}{bits // 8}")
    sizes = tuple(shape)
    steps = contiguous(sizes) if strides is None else tuple(strides)
    return View(name, address, sizes, steps, dtype, gpu, is_read_only, _stream(value, gpu), owner)


def _by_interface(name: str, value: Any, gpu: int, given: dict[str, Any] | None = None) -> View:
    interface = value.__cuda_array_interface__ if given is None else given
    shape, dtype, strides = _interface(name, interface)
    address, is_read_only = interface["data"]
    return View(name, address, shape, strides, dtype, gpu, is_read_only, interface.get("stream"), None)


def _interface(name: str, interface: dict[str, Any]) -> tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]:
    """Return shape, dtype and strides in entries."""
    if interface.get("mask") is not None:
        raise ArgumentTypeError(f"{name}: masked arrays are not supported", name)
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    strides = interface.get("strides")
    if strides is None:
        return shape, dtype, contiguous(shape)
    if any(step % dtype.itemsize for step in strides):
        raise ArgumentError(f"{name}: has strides that are no multiples of an entry; copy it", name)
    return shape, dtype, tuple(step // dtype.itemsize for step in strides)


def _stream(value: Any, gpu: int) -> int | None:
    """Return the stream that the package of an array works in; none where it does not tell."""
    if type(value).__module__.partition(".")[0] == "torch":
        # 0 is the default stream, which has the handle 1.
        return int(sys.modules["torch"].cuda.current_stream(gpu).cuda_stream) or 1
    interface = getattr(value, "__cuda_array_interface__", None)
    stream = None if interface is None else interface.get("stream")
    return None if stream is None else int(stream)
