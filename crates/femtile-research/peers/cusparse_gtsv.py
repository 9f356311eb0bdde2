"""Times cuSPARSE on batches of tridiagonal systems: gtsv2StridedBatch (axis x), gtsvInterleavedBatch (axis y).

Arguments: precision (f32 or f64), axis, threads (not used), repeats, then length and number of systems of each size.
Prints JSON. CuPy holds the memory and times by events; cuSPARSE is called through ctypes.
"""

import ctypes
import json
import sys

import cupy

precision, axis, repeats = sys.argv[1], sys.argv[2], int(sys.argv[4])
sizes = [int(word) for word in sys.argv[5:]]
dtype = {"f32": cupy.float32, "f64": cupy.float64}[precision]
letter = {"f32": "S", "f64": "D"}[precision]
ALGORITHM = 0  # of gtsvInterleavedBatch: Thomas


def library():
    reasons = []
    for name in ["libcusparse.so.12", "libcusparse.so.13", "libcusparse.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    try:
        import glob
        import os

        import nvidia

        for root in nvidia.__path__:
            for path in glob.glob(os.path.join(root, "**", "libcusparse.so.*"), recursive=True):
                return ctypes.CDLL(path)
    except (ImportError, OSError) as error:
        reasons.append(str(error))
    sys.exit("cuSPARSE was not found: " + "; ".join(reasons))


cusparse = library()


def call(name, *arguments):
    status = getattr(cusparse, name)(*arguments)
    if status != 0:
        sys.exit(f"{name} failed with status {status}")


def pointer(array):
    return ctypes.c_void_p(array.data.ptr)


handle = ctypes.c_void_p()
call("cusparseCreate", ctypes.byref(handle))
call("cusparseSetStream", handle, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr))
version = ctypes.c_int()
call("cusparseGetVersion", handle, ctypes.byref(version))


def solver(length, n_systems, arrays):
    pointers = [pointer(array) for array in arrays]
    n, batch, size = ctypes.c_int(length), ctypes.c_int(n_systems), ctypes.c_size_t()
    if axis == "x":
        name = f"cusparse{letter}gtsv2StridedBatch"
        arguments = [handle, n, *pointers, batch, n]
    else:
        name = f"cusparse{letter}gtsvInterleavedBatch"
        arguments = [handle, ctypes.c_int(ALGORITHM), n, *pointers, batch]
    call(f"{name}_bufferSizeExt", *arguments, ctypes.byref(size))
    buffer = cupy.empty(max(1, size.value), cupy.uint8)
    # The buffer must outlive the calls, so the closure holds it.
    return lambda: (call(name, *arguments, pointer(buffer)), buffer)


def nanoseconds(length, n_systems):
    n = length * n_systems
    shape = (n_systems, length) if axis == "x" else (length, n_systems)
    first, last = (numpy_index(axis, 0), numpy_index(axis, -1))
    lower = cupy.random.uniform(-0.3, 0.3, shape, dtype)
    upper = cupy.random.uniform(-0.3, 0.3, shape, dtype)
    lower[first] = 0
    upper[last] = 0
    diagonal, rhs = cupy.ones(shape, dtype), cupy.random.uniform(-1, 1, shape, dtype)
    # gtsvInterleavedBatch overwrites its bands: each run begins from copies.
    kept = [lower, diagonal, upper, rhs]
    work = [array.copy() for array in kept]
    solve = solver(length, n_systems, work)
    begin, end, best = cupy.cuda.Event(), cupy.cuda.Event(), float("inf")
    for _ in range(repeats + 1):
        for array, values in zip(work, kept):
            cupy.copyto(array, values)
        begin.record()
        solve()
        end.record()
        end.synchronize()
        best = min(best, 1e6 * cupy.cuda.get_elapsed_time(begin, end))
    x, a, c, d = work[3], lower, upper, rhs
    residual = x - d
    if axis == "x":
        residual[:, 1:] += a[:, 1:] * x[:, :-1]
        residual[:, :-1] += c[:, :-1] * x[:, 1:]
    else:
        residual[1:] += a[1:] * x[:-1]
        residual[:-1] += c[:-1] * x[1:]
    if not float(abs(residual).max()) < (1e-4 if precision == "f32" else 1e-12):
        sys.exit(f"the solution is wrong by {float(abs(residual).max())} at length {length}")
    return best / n


def numpy_index(axis, k):
    return (slice(None), k) if axis == "x" else (k, slice(None))


ns = [nanoseconds(length, n_systems) for length, n_systems in zip(sizes[::2], sizes[1::2])]
number = version.value
name = "gtsv2StridedBatch" if axis == "x" else "gtsvInterleavedBatch"
label = f"cuSPARSE {number // 1000}.{number // 100 % 10}.{number % 100}"
print(json.dumps({"library": label, "solver": name, "ns": ns}))
