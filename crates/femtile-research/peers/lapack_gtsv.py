"""Times LAPACK's ?gtsv as SciPy brings it on batches of tridiagonal systems.

Arguments: precision (f32 or f64), axis (x alone), threads, repeats, then length and number of systems of each size.
Systems are joined, with zeros between them, into pieces that stay in the cache, so that calls cost nothing beside the
work; no more of them are made than 1 GiB holds. Prints JSON.
"""

import ctypes
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import scipy
from scipy.linalg import cython_lapack

precision, axis, threads, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sizes = [int(word) for word in sys.argv[5:]]
dtype = numpy.dtype({"f32": "float32", "f64": "float64"}[precision])
name = {"f32": "sgtsv", "f64": "dgtsv"}[precision]

capsule = cython_lapack.__pyx_capi__[name]
ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
ctypes.pythonapi.PyCapsule_GetName.argtypes = [ctypes.py_object]
ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
address = ctypes.pythonapi.PyCapsule_GetPointer(capsule, ctypes.pythonapi.PyCapsule_GetName(capsule))
gtsv = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 8)(address)

PIECE_BYTES = 256 << 10
BATCH_BYTES = 1 << 30


def solve(pieces):
    info, one = ctypes.c_int(), ctypes.c_int(1)
    for n, addresses in pieces:
        size = ctypes.byref(ctypes.c_int(n))
        gtsv(size, ctypes.byref(one), *addresses, size, ctypes.byref(info))
        if info.value:
            raise SystemExit(f"{name} failed: info = {info.value}")


def staggered(n, k):
    """An array whose place differs from the others' in the address bits that a cache goes by."""
    return numpy.empty(n + 1024, dtype)[k * 1104 // dtype.itemsize :][:n]


def nanoseconds(length, n_systems):
    row_bytes = 4 * dtype.itemsize
    n_systems = max(1, min(n_systems, BATCH_BYTES // (row_bytes * length)))
    joined = max(1, PIECE_BYTES // (row_bytes * length))
    n = length * n_systems
    random = numpy.random.default_rng(1)
    arrays = [random.uniform(-0.3, 0.3, n).astype(dtype) for _ in range(2)] + [random.uniform(-1, 1, n).astype(dtype)]
    lower, upper, rhs = arrays
    # LAPACK counts the entries below the diagonal from the second row.
    lower[length - 1 :: length] = 0
    upper[length - 1 :: length] = 0
    kept = [lower, numpy.ones(n, dtype), upper, rhs]
    work = [staggered(n, k) for k in range(4)]
    pieces = []
    for first in range(0, n_systems, joined):
        rows = slice(first * length, min(first + joined, n_systems) * length)
        pieces.append((rows.stop - rows.start, [array[rows].ctypes.data for array in work]))
    shares = [pieces[k::threads] for k in range(threads)]
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats + 1):
            for array, values in zip(work, kept):
                array[:] = values
            begun = time.perf_counter()
            list(pool.map(solve, shares))
            best = min(best, time.perf_counter() - begun)
    return 1e9 * best / n


ns = [nanoseconds(length, n_systems) for length, n_systems in zip(sizes[::2], sizes[1::2])]
print(json.dumps({"library": f"LAPACK of SciPy {scipy.__version__}", "solver": name, "ns": ns}))
