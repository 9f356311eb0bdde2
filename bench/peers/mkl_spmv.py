"""Times MKL's mkl_sparse_?_mv on matrices in compressed rows.

Arguments: precision (f32 or f64), threads, repeats, then a folder for each matrix with offsets.u32,
columns.u32, values.f64 and x.f64, little-endian. `plain` multiplies at once, `optimised` announces the calls
and lets MKL prepare first; each has a handle of its own and is warmed up. Prints JSON: seconds of a product
(least and median), of which Python's call is some 2 microseconds, seconds of the preparation, and sums of
the result for comparison with others.
"""

import ctypes
import glob
import json
import os
import statistics
import sys
import time

import numpy

precision, threads, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
folders = sys.argv[4:]
dtype = numpy.dtype({"f32": "float32", "f64": "float64"}[precision])
scalar = {"f32": ctypes.c_float, "f64": ctypes.c_double}[precision]
letter = {"f32": "s", "f64": "d"}[precision]
WARM_UP = 3
BASE_ZERO, NOT_TRANSPOSED, GENERAL = 0, 10, 20
INTEL_THREADS, SEQUENTIAL = 0, 1


def library():
    for folder in [os.path.join(sys.prefix, "lib"), os.path.join(sys.prefix, "Library", "bin")]:
        for path in sorted(glob.glob(os.path.join(folder, "libmkl_rt.so*"))):
            return ctypes.CDLL(path)
    try:
        return ctypes.CDLL("libmkl_rt.so")
    except OSError as error:
        sys.exit(f"MKL was not found: {error}")


mkl = library()
mkl.MKL_Set_Threading_Layer(SEQUENTIAL if threads == 1 else INTEL_THREADS)
mkl.MKL_Set_Num_Threads(threads)
mkl.MKL_Set_Dynamic(0)
text = ctypes.create_string_buffer(198)
mkl.MKL_Get_Version_String(text, 198)
words = text.value.decode().replace("Version", "").split()
version = next(word for word in words if word[0].isdigit()).split("-")[0]


class Description(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int)]


def call(name, *arguments):
    status = getattr(mkl, name)(*arguments)
    if status != 0:
        sys.exit(f"{name} failed with status {status}")


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class Matrix:
    def __init__(self, folder):
        read = lambda name, kind: numpy.fromfile(os.path.join(folder, name), kind)
        offsets, columns = read("offsets.u32", "<u4"), read("columns.u32", "<u4")
        if columns.size >= 1 << 31:
            sys.exit(f"{folder}: more entries than MKL's 32-bit integers count")
        self.offsets, self.columns = offsets.astype("i4"), columns.astype("i4")
        self.values = read("values.f64", "<f8").astype(dtype)
        self.x = read("x.f64", "<f8").astype(dtype)
        self.n_rows = offsets.size - 1

    def handle(self):
        handle = ctypes.c_void_p()
        rows, columns = ctypes.c_int(self.n_rows), ctypes.c_int(self.x.size)
        begins, ends = pointer(self.offsets), pointer(self.offsets[1:])
        arrays = [begins, ends, pointer(self.columns), pointer(self.values)]
        name = f"mkl_sparse_{letter}_create_csr"
        call(name, ctypes.byref(handle), ctypes.c_int(BASE_ZERO), rows, columns, *arrays)
        return handle


def measure(matrix, optimised):
    handle, description = matrix.handle(), Description(GENERAL, 0, 0)
    operation = ctypes.c_int(NOT_TRANSPOSED)
    begun = time.perf_counter()
    if optimised:
        call("mkl_sparse_set_mv_hint", handle, operation, description, ctypes.c_int(max(repeats, 1000)))
        call("mkl_sparse_optimize", handle)
    prepared = time.perf_counter() - begun
    y = numpy.full(matrix.n_rows, numpy.nan, dtype)
    arguments = [operation, scalar(1), handle, description, pointer(matrix.x), scalar(0), pointer(y)]
    seconds = []
    for _ in range(WARM_UP + repeats):
        begun = time.perf_counter()
        call(f"mkl_sparse_{letter}_mv", *arguments)
        seconds.append(time.perf_counter() - begun)
    call("mkl_sparse_destroy", handle)
    seconds = seconds[WARM_UP:]
    result = y.astype("f8")
    return {
        "algorithm": "optimised" if optimised else "plain",
        "seconds_min": min(seconds),
        "seconds_median": statistics.median(seconds),
        "seconds_prepare": prepared,
        "sum": result.sum(),
        "sum_abs": abs(result).sum(),
    }


def times(folder):
    matrix = Matrix(folder)
    return [measure(matrix, optimised) for optimised in [False, True]]


print(json.dumps({"library": f"MKL {version}", "matrices": [times(folder) for folder in folders]}))
