// y = A x for a matrix in padded jagged diagonals, one thread a row.
#include "femtile.cuh"
#include "batch.cuh"
#include "hook.cuh"

const u32 THREADS = 256;
const u32 AT_ONCE = 8;

// y = A x. Reads 12 bytes a non-zero and 8 a row in f64; y is written in the order of the sorted rows.
extern "C" __global__ void __launch_bounds__(THREADS) jds_apply(
    T* y, const u32* rows, const u32* lengths, const u32* starts, const u32* columns, const T* values, const T* x,
    u64 n_rows, Hook hook) {
    if (hook.is_idle()) return;
    const u64 place = blockIdx.x * (u64)THREADS + threadIdx.x;
    if (place < n_rows) {
        const u32 row = rows[place], length = lengths[place];
        T sum = 0;
        for (u32 j = 0; j < length; j += AT_ONCE) {
            Batch<AT_ONCE> batch;
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                const bool has_entry = j + k < length;
                batch.load(k, has_entry, columns, values, (has_entry ? starts[j + k] : 0) + (u32)place);
            }
            batch.add_to(sum, x);
        }
        y[row] = sum;
        hook.post(row, x, sum);
    }
    hook.finish();
}
