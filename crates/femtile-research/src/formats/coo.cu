// y += A x for a matrix in coordinates sorted by row.
#include "femtile.cuh"
#include "segmented.cuh"

// Reads 16 bytes an entry in f64, each once, and writes 8 a row that has entries; a block takes a tile of entries.
extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS) coo_add(
    T* y, u32* open_rows, T* open_sums, const u32* rows, const u32* columns, const T* values, const T* x, u64 n) {
    FEMTILE_SHARED u32 staged_rows[STAGED];
    FEMTILE_SHARED T products[STAGED];
    const u64 tile = blockIdx.x * (u64)TILE;
    Loaded loaded;
    loaded.load(columns, values, tile, n);
#pragma unroll
    for (u32 k = 0; k < PER_THREAD; ++k) {
        const u64 entry = tile + k * SEGMENT_THREADS + threadIdx.x;
        staged_rows[staged(k * SEGMENT_THREADS + threadIdx.x)] = entry < n ? __ldcs(rows + entry) : NO_ROW;
    }
    if (threadIdx.x == 0) staged_rows[staged(TILE)] = tile + TILE < n ? rows[tile + TILE] : NO_ROW;
    loaded.stage_products(products, x);
    __syncthreads();
    u32 end_of[PER_THREAD];
    T term[PER_THREAD];
    u32 row = staged_rows[staged(threadIdx.x * PER_THREAD)], last_row = row;
#pragma unroll
    for (u32 k = 0; k < PER_THREAD; ++k) {
        const u32 entry = threadIdx.x * PER_THREAD + k;
        const u32 next_row = staged_rows[staged(entry + 1)];
        term[k] = products[staged(entry)];
        end_of[k] = row != next_row ? row : NO_ROW;
        last_row = row;
        row = next_row;
    }
    const T open = sum_rows<true>(y, end_of, term);
    if (threadIdx.x == SEGMENT_THREADS - 1) {
        open_rows[blockIdx.x] = last_row;
        open_sums[blockIdx.x] = open;
    }
}
