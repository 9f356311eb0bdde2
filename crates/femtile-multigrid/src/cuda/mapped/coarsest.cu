// The inverse of a symmetric positive definite matrix, and its product with a right-hand side.
#include "femtile.cuh"

// One pivot of Gauss-Jordan elimination in place, from one copy of the matrix to another; after all of them the copy is
// -A^-1. No pivoting is needed, and the matrix stays symmetric. A thread per entry.
extern "C" __global__ void dense_eliminate(double* to, const double* from, u64 n, u64 pivot) {
    const u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (at >= n * n) return;
    const u64 row = at / n, column = at % n;
    const double inverse = 1.0 / from[pivot * n + pivot], entry = from[at];
    if (row == pivot && column == pivot) {
        to[at] = -inverse;
    } else if (row == pivot || column == pivot) {
        to[at] = entry * inverse;
    } else {
        to[at] = entry - from[pivot * n + row] * from[pivot * n + column] * inverse;
    }
}

// x = -F b at the nodes of n unknowns, with F: [n][n] in f64; a warp per row.
extern "C" __global__ void dense_solve(T* x, const T* b, const double* matrix, const u32* nodes, u64 n) {
    const u64 row = (blockIdx.x * (u64)blockDim.x + threadIdx.x) / WARP;
    const u32 lane = threadIdx.x % WARP;
    double sum = 0;
    for (u64 column = lane; row < n && column < n; column += WARP) {
        sum += __ldg(matrix + row * n + column) * (double)b[__ldg(nodes + column)];
    }
    sum = warp_sum(sum);
    if (row < n && lane == 0) x[__ldg(nodes + row)] = (T)-sum;
}
