// y = A x for a matrix in ELLPACK, by one or more threads a row.
#include "femtile.cuh"
#include "batch.cuh"
#include "hook.cuh"

const u32 THREADS = 256;
// Threads of a row; entry j of row i lies at (j / LANES) pitch + i LANES + j % LANES.
const u32 LANES = FEMTILE_LANES;
const u32 ROWS_AT_ONCE = THREADS / LANES;
// Rows of a block: no fewer than a hook allows.
const u32 ROWS = ROWS_AT_ONCE < 64 ? 64 : ROWS_AT_ONCE;
const u32 AT_ONCE = LANES < 4 ? 8 : 4;

__device__ inline T sum_of_lane(
    const u32* columns, const T* values, const T* x, u32 first, u32 pitch, u32 steps) {
    T sum = 0;
    u32 step = 0;
    Batch<AT_ONCE> batch;
    // Where all lanes have the same steps, a mask would become a branch around each load.
    for (; !FEMTILE_LENGTHS && step + AT_ONCE <= steps; step += AT_ONCE) {
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) batch.load(k, true, columns, values, first + (step + k) * pitch);
        batch.add_to(sum, x);
    }
    for (; step < steps; step += AT_ONCE) {
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            batch.load(k, step + k < steps, columns, values, first + (step + k) * pitch);
        }
        batch.add_to(sum, x);
    }
    return sum;
}

// y = A x. Reads 12 bytes a non-zero and 4 a row in f64, or 12 bytes a stored entry where there are no lengths.
extern "C" __global__ void __launch_bounds__(THREADS) ell_apply(
    T* y, const u32* lengths, const u32* columns, const T* values, const T* x, u64 n_rows, u32 pitch, u32 steps,
    Hook hook) {
    if (hook.is_idle()) return;
    const u32 lane = threadIdx.x % LANES;
    for (u32 sweep = 0; sweep < ROWS; sweep += ROWS_AT_ONCE) {
        const u64 row = blockIdx.x * (u64)ROWS + sweep + threadIdx.x / LANES;
        T sum = 0;
        if (row < n_rows) {
            const u32 of_lane = FEMTILE_LENGTHS ? (lengths[row] + LANES - 1 - lane) / LANES : steps;
            sum = sum_of_lane(columns, values, x, (u32)row * LANES + lane, pitch, of_lane);
        }
#pragma unroll
        for (u32 half = LANES / 2; half > 0; half /= 2) sum += __shfl_down_sync(FULL_WARP, sum, half, LANES);
        if (row < n_rows && lane == 0) {
            y[row] = sum;
            hook.post(row, x, sum);
        }
    }
    hook.finish();
}
