// y = A x for a matrix in ELLPACK, by one thread a row.
#include "femtile.cuh"

const u32 THREADS = 256;
// Entries of a row that are loaded together, so that their loads are under way at once.
const u32 AT_ONCE = 8;
// Stands where there is no entry.
const u32 NO_COLUMN = 0xffffffffu;

// Adds entries of a row from `entry` on, as many as `n` but AT_ONCE at most.
__device__ inline void add(T& sum, const u32* columns, const T* values, const T* x, u32 entry, u32 pitch, u32 n) {
    u32 column[AT_ONCE];
    T value[AT_ONCE], of_x[AT_ONCE];
    // Matrix entries pass through caches that x has a better use for.
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; ++k) {
        column[k] = k < n ? __ldcs(columns + entry + k * pitch) : NO_COLUMN;
        value[k] = k < n ? __ldcs(values + entry + k * pitch) : 0;
    }
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; ++k) of_x[k] = column[k] != NO_COLUMN ? x[column[k]] : 0;
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; ++k) sum += value[k] * of_x[k];
}

// Reads 12 bytes a stored entry in f64.
extern "C" __global__ void __launch_bounds__(THREADS) ell_apply(
    T* y, const u32* columns, const T* values, const T* x, u64 n_rows, u32 pitch, u32 steps) {
    const u64 row = blockIdx.x * (u64)THREADS + threadIdx.x;
    if (row >= n_rows) return;
    T sum = 0;
    u32 step = 0;
    // With a number that is known, a mask would not become a branch around each load.
    for (; step + AT_ONCE <= steps; step += AT_ONCE) {
        add(sum, columns, values, x, (u32)row + step * pitch, pitch, AT_ONCE);
    }
    if (step < steps) add(sum, columns, values, x, (u32)row + step * pitch, pitch, steps - step);
    y[row] = sum;
}
