"""Times MKL's ?dtsvb, for diagonally dominant systems, on batches of tridiagonal systems.

Arguments: precision (f32 or f64), axis (x alone), threads, repeats, then length and number of systems of each size.
Systems are joined, with zeros between them, into pieces that stay in the cache, so that calls cost nothing beside the
work; threads call the sequential MKL. No more systems are made than 1 GiB holds. Prints JSON.
"""

import ctypes
import glob
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy

precision, axis, threads, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sizes = [int(word) for word in sys.argv[5:]]
dtype = numpy.dtype({"f32": "float32", "f64": "float64"}[precision])
name = {"f32": "sdtsvb", "f64": "ddtsvb"}[precision]
PIECE_BYTES = 256 << 10
BATCH_BYTES = 1 << 30


def library():
    for folder in [os.path.join(sys.prefix, "lib"), os.path.join(sys.prefix, "Library", "bin")]:
        for path in sorted(glob.glob(os.path.join(folder, "libmkl_rt.so*"))):
            return ctypes.CDLL(path)
    try:
        return ctypes.CDLL("libmkl_rt.so")
    except OSError as error:
        sys.exit(f"MKL was not found: {error}")


mkl = library()
mkl.MKL_Set_Threading_Layer(1)  # sequential
text = ctypes.create_string_buffer(198)
mkl.MKL_Get_Version_String(text, 198)
words = text.value.decode().replace("Version", "").split()
version = next(word for word in words if word[0].isdigit()).split("-")[0]
dtsvb = getattr(mkl, name + "_")


def solve(pieces):
    info, one = ctypes.c_int(), ctypes.c_int(1)
    for n, addresses in pieces:
        size = ctypes.c_int(n)
        dtsvb(ctypes.byref(size), ctypes.byref(one), *addresses, ctypes.byref(size), ctypes.byref(info))
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
    lower, upper = (random.uniform(-0.3, 0.3, n).astype(dtype) for _ in range(2))
    right = random.uniform(-1, 1, n).astype(dtype)
    # MKL counts the entries below the diagonal from the second row.
    lower[length - 1 :: length] = 0
    upper[length - 1 :: length] = 0
    kept = [lower, numpy.ones(n, dtype), upper, right]
    work = [staggered(n, k) for k in range(4)]
    pieces = []
    for first in range(0, n_systems, joined):
        rows = slice(first * length, min(first + joined, n_systems) * length)
        pieces.append((rows.stop - rows.start, [ctypes.c_void_p(array[rows].ctypes.data) for array in work]))
    shares = [pieces[k::threads] for k in range(threads)]
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats + 1):
            for array, values in zip(work, kept):
                array[:] = values
            begun = time.perf_counter()
            list(pool.map(solve, shares))
            best = min(best, time.perf_counter() - begun)
    solution = work[3]
    residual = solution - right
    residual[1:] += lower[:-1] * solution[:-1]
    residual[:-1] += upper[:-1] * solution[1:]
    if not abs(residual).max() < 100 * numpy.finfo(dtype).eps:
        sys.exit(f"the solution is wrong by {abs(residual).max()}")
    return 1e9 * best / n


ns = [nanoseconds(length, n_systems) for length, n_systems in zip(sizes[::2], sizes[1::2])]
print(json.dumps({"library": f"MKL {version}", "solver": name, "ns": ns}))
