"""Times MKL's ?gbsv on block tridiagonal systems held as banded ones.

Arguments: precision (f32 or f64), threads, repeats, then rows of a block, rows of blocks and number of systems of each
size. Systems are shared out to threads that each call the sequential MKL, which is faster than its own threads at these
sizes; no more of them are made than 1 GiB holds. Prints JSON with nanoseconds for a row of blocks.
"""

import ctypes
import glob
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy

precision, threads, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sizes = [int(word) for word in sys.argv[4:]]
dtype = numpy.dtype({"f32": "float32", "f64": "float64"}[precision])
name = {"f32": "sgbsv", "f64": "dgbsv"}[precision]
BATCH_BYTES = 1 << 30


def library():
    folders = [os.path.join(sys.prefix, "lib"), os.path.join(sys.prefix, "Library", "bin"), ""]
    for folder in folders:
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
gbsv = getattr(mkl, name + "_")


def solve(systems):
    info = ctypes.c_int()
    for n, band, rows, ab, pivots, rhs in systems:
        order, half, leading = ctypes.c_int(n), ctypes.c_int(band), ctypes.c_int(rows)
        one, by = ctypes.c_int(1), ctypes.byref
        gbsv(by(order), by(half), by(half), by(one), ab, by(leading), pivots, rhs, by(order), by(info))
        if info.value:
            raise SystemExit(f"{name} failed: info = {info.value}")


def nanoseconds(block, length, n_systems):
    n, band = block * length, 2 * block - 1
    rows = 3 * band + 1
    n_systems = max(1, min(n_systems, BATCH_BYTES // (rows * n * dtype.itemsize)))
    random = numpy.random.default_rng(1)
    # One matrix with blocks near those of a unit matrix; all systems have it, and right sides of their own.
    i, j = numpy.meshgrid(numpy.arange(n), numpy.arange(n), indexing="ij")
    near = abs(i // block - j // block) <= 1
    dense = numpy.where(near, random.uniform(-0.3 / block, 0.3 / block, (n, n)), 0) + numpy.eye(n)
    matrix = numpy.zeros((n, rows), dtype)  # column-major, as LAPACK has it
    matrix[j[near], (2 * band + i - j)[near]] = dense[near]
    kept = numpy.broadcast_to(matrix, (n_systems, n, rows))
    right = random.uniform(-1, 1, (n_systems, n)).astype(dtype)
    work, solution = numpy.empty(kept.shape, dtype), numpy.empty_like(right)
    pivots = numpy.empty((threads, n), numpy.int32)
    shares = []
    for k in range(threads):
        systems = range(k, n_systems, threads)
        pointer = pivots[k].ctypes.data_as(ctypes.c_void_p)
        at = lambda array, s: ctypes.c_void_p(array.ctypes.data + s * array.strides[0])
        shares.append([(n, band, rows, at(work, s), pointer, at(solution, s)) for s in systems])
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats + 1):
            work[:], solution[:] = kept, right
            begun = time.perf_counter()
            list(pool.map(solve, shares))
            best = min(best, time.perf_counter() - begun)
    error = abs(dense @ solution[-1].astype("f8") - right[-1]).max()
    if not error < (1e-4 if precision == "f32" else 1e-12):
        sys.exit(f"the solution is wrong by {error}")
    return 1e9 * best / (n_systems * length)


ns = [nanoseconds(*sizes[k : k + 3]) for k in range(0, len(sizes), 3)]
print(json.dumps({"library": f"MKL {version}", "solver": name, "ns": ns}))
