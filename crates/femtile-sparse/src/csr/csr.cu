// y = A x for a matrix in compressed sparse rows, and its inverse diagonal.
#include "femtile.cuh"
#include "hook.cuh"

typedef FEMTILE_OFFSET Offset;

// Rows of a block, one a thread, and products that it stages at once.
const u32 ROWS = 512;
const u32 PER_THREAD = 8;
const u32 STAGE = ROWS * PER_THREAD;

// y = A x. Reads 12 bytes a non-zero and 20 a row in f64, each once: a block computes the products of its rows
// in the order in which they lie in memory, and each thread then adds those of its row from shared memory.
extern "C" __global__ void __launch_bounds__(ROWS) csr_apply(
    T* y, const Offset* offsets, const u32* columns, const T* values, const T* x, u64 n_rows, Hook hook) {
    if (hook.is_idle()) return;
    FEMTILE_SHARED T products[STAGE];
    const u64 first_row = blockIdx.x * (u64)ROWS, row = first_row + threadIdx.x;
    const u64 last_row = first_row + ROWS < n_rows ? first_row + ROWS : n_rows;
    const u64 first = offsets[first_row], last = offsets[last_row];
    u64 next = 0, end = 0;
    if (row < n_rows) {
        next = offsets[row];
        end = offsets[row + 1];
    }
    T sum = 0;
    for (u64 stage = first; stage < last; stage += STAGE) {
        u32 column[PER_THREAD];
        T value[PER_THREAD];
#pragma unroll
        for (u32 k = 0; k < PER_THREAD; ++k) {
            const u64 entry = stage + k * ROWS + threadIdx.x;
            column[k] = entry < last ? columns[entry] : 0;
            value[k] = entry < last ? values[entry] : 0;
        }
#pragma unroll
        for (u32 k = 0; k < PER_THREAD; ++k) products[k * ROWS + threadIdx.x] = value[k] * x[column[k]];
        __syncthreads();
        const u64 stage_end = stage + STAGE < end ? stage + STAGE : end;
        for (; next < stage_end; ++next) sum += products[next - stage];
        __syncthreads();
    }
    if (row < n_rows) {
        y[row] = sum;
        hook.post(row, x, sum);
    }
    hook.finish();
}

// Lanes of a row where rows are few.
const u32 LANES = 8;

// The same for matrices of so few rows that blocks of many would leave most of the GPU idle, and take their stages one
// after the other: eight lanes take a row.
extern "C" __global__ void __launch_bounds__(ROWS) csr_apply_few(
    T* y, const Offset* offsets, const u32* columns, const T* values, const T* x, u64 n_rows, Hook hook) {
    if (hook.is_idle()) return;
    const u64 row = (blockIdx.x * (u64)ROWS + threadIdx.x) / LANES;
    Offset next = 0, end = 0;
    if (row < n_rows) {
        next = offsets[row] + threadIdx.x % LANES;
        end = offsets[row + 1];
    }
    T sum = 0;
#pragma unroll 4
    for (; next < end; next += LANES) sum += values[next] * x[columns[next]];
    for (u32 half = LANES / 2; half > 0; half /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, (int)half);
    if (row < n_rows && threadIdx.x % LANES == 0) {
        y[row] = sum;
        hook.post(row, x, sum);
    }
    hook.finish();
}

// d_i = 1 / a_ii; where that entry is not positive and finite, d_i = a_ii, and `bad` becomes the first such row.
extern "C" __global__ void csr_inverse_diagonal(
    T* d, u64* bad, const Offset* offsets, const u32* columns, const T* values, u64 n_rows) {
    const u64 row = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (row >= n_rows) return;
    T entry = 0;
    for (u64 i = offsets[row]; i < offsets[row + 1]; ++i) {
        if (columns[i] == row) entry = values[i];
    }
    const bool is_sound = entry > 0 && entry - entry == 0;
    d[row] = is_sound ? 1 / entry : entry;
    if (!is_sound) atomicMin(bad, row);
}
