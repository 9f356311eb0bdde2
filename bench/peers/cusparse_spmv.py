"""Times cuSPARSE's SpMV on matrices in compressed rows, with each of its algorithms.

Arguments: precision (f32 or f64), threads (not used), repeats, then a folder for each matrix with
offsets.u32, columns.u32, values.f64 and x.f64, little-endian. Each algorithm is prepared where the library
can (cusparseSpMV_preprocess) and warmed up. Products follow each other without a wait, in batches timed by
events. Prints JSON: seconds of a product (least and median over the batches), seconds of the preparation,
and sums of the result for comparison with others. CuPy holds the memory and times by events; cuSPARSE is
called through ctypes.
"""

import ctypes
import json
import os
import statistics
import sys
import time

import cupy
import numpy

precision, repeats = sys.argv[1], int(sys.argv[3])
folders = sys.argv[4:]
dtype = numpy.dtype({"f32": "float32", "f64": "float64"}[precision])
scalar = {"f32": ctypes.c_float, "f64": ctypes.c_double}[precision]
WARM_UP, CALLS = 3, 20  # batches before the measured ones; products of a batch
# Values of cuSPARSE's and CUDA's enumerations.
REAL = {"f32": 0, "f64": 1}[precision]
INDEX_32, BASE_ZERO, NOT_TRANSPOSED = 2, 0, 0
ALGORITHMS = {"COO_ALG1": 1, "CSR_ALG1": 2, "CSR_ALG2": 3, "COO_ALG2": 4}


def library():
    reasons = []
    for name in ["libcusparse.so.12", "libcusparse.so.13", "libcusparse.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    try:
        import glob

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


def create(name, *arguments):
    made = ctypes.c_void_p()
    call(name, ctypes.byref(made), *arguments)
    return made


handle = create("cusparseCreate")
call("cusparseSetStream", handle, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr))
number = ctypes.c_int()
call("cusparseGetVersion", handle, ctypes.byref(number))


class Matrix:
    def __init__(self, folder):
        read = lambda name, kind: numpy.fromfile(os.path.join(folder, name), kind)
        offsets, columns = read("offsets.u32", "<u4"), read("columns.u32", "<u4")
        if columns.size >= 1 << 31:
            sys.exit(f"{folder}: more entries than 32-bit integers with a sign count")
        self.n_rows = offsets.size - 1
        lengths = numpy.diff(offsets.astype("i8"))
        self.rows = cupy.asarray(numpy.repeat(numpy.arange(self.n_rows, dtype="i4"), lengths))
        self.offsets, self.columns = cupy.asarray(offsets.astype("i4")), cupy.asarray(columns.astype("i4"))
        self.values = cupy.asarray(read("values.f64", "<f8").astype(dtype))
        self.x = cupy.asarray(read("x.f64", "<f8").astype(dtype))

    def descriptor(self, layout):
        sizes = [ctypes.c_int64(size) for size in [self.n_rows, self.x.size, self.values.size]]
        columns, values = pointer(self.columns), pointer(self.values)
        index, base, real = ctypes.c_int(INDEX_32), ctypes.c_int(BASE_ZERO), ctypes.c_int(REAL)
        if layout == "CSR":
            arrays = [pointer(self.offsets), columns, values]
            return create("cusparseCreateCsr", *sizes, *arrays, index, index, base, real)
        return create("cusparseCreateCoo", *sizes, pointer(self.rows), columns, values, index, base, real)


def vector(array):
    return create("cusparseCreateDnVec", ctypes.c_int64(array.size), pointer(array), ctypes.c_int(REAL))


def prepare(arguments):
    """Lets the library look at the matrix; false where it cannot, being older or for this algorithm."""
    if not hasattr(cusparse, "cusparseSpMV_preprocess"):
        return False
    return cusparse.cusparseSpMV_preprocess(*arguments) == 0


def batches(product):
    """Seconds of a product, one figure for each batch."""
    begin, end, seconds = cupy.cuda.Event(), cupy.cuda.Event(), []
    for _ in range(WARM_UP + repeats):
        begin.record()
        for _ in range(CALLS):
            product()
        end.record()
        end.synchronize()
        seconds.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end) / CALLS)
    return seconds[WARM_UP:]


def measure(matrix, name):
    a, y = matrix.descriptor(name[:3]), cupy.full(matrix.n_rows, numpy.nan, dtype)
    x_vector, y_vector = vector(matrix.x), vector(y)
    one, zero, size = scalar(1), scalar(0), ctypes.c_size_t()
    operation, real, algorithm = (ctypes.c_int(k) for k in [NOT_TRANSPOSED, REAL, ALGORITHMS[name]])
    factors = [ctypes.byref(one), ctypes.byref(zero)]
    inputs = [handle, operation, factors[0], a, x_vector, factors[1], y_vector, real, algorithm]
    call("cusparseSpMV_bufferSize", *inputs, ctypes.byref(size))
    buffer = cupy.empty(max(1, size.value), cupy.uint8)
    arguments = [*inputs, pointer(buffer)]
    cupy.cuda.runtime.deviceSynchronize()
    begun = time.perf_counter()
    prepared = prepare(arguments)
    cupy.cuda.runtime.deviceSynchronize()
    preparation = time.perf_counter() - begun
    spmv = cusparse.cusparseSpMV

    def product():
        status = spmv(*arguments)
        if status != 0:
            sys.exit(f"cusparseSpMV ({name}) failed with status {status}")

    seconds = batches(product)
    for vector_ in [x_vector, y_vector]:
        call("cusparseDestroyDnVec", vector_)
    call("cusparseDestroySpMat", a)
    result = cupy.asnumpy(y).astype("f8")
    return {
        "algorithm": name,
        "seconds_min": min(seconds),
        "seconds_median": statistics.median(seconds),
        "seconds_prepare": preparation if prepared else None,
        "sum": result.sum(),
        "sum_abs": abs(result).sum(),
    }


def times(folder):
    matrix = Matrix(folder)
    return [measure(matrix, name) for name in ["CSR_ALG1", "CSR_ALG2", "COO_ALG1", "COO_ALG2"]]


matrices = [times(folder) for folder in folders]
label = f"cuSPARSE {number.value // 1000}.{number.value // 100 % 10}.{number.value % 100}"
print(json.dumps({"library": label, "matrices": matrices}))
