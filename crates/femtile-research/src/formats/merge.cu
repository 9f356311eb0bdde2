// y = A x for a matrix in compressed sparse rows, with the same number of entries for every block.
#include "femtile.cuh"
#include "segmented.cuh"

typedef FEMTILE_OFFSET Offset;

// Marks the last entry of each row that ends in this tile with its row; rows without entries are zero.
__device__ inline void mark_ends(u32* marks, T* y, const Offset* offsets, u64 tile, u32 first_row, u32 last_row) {
    for (u32 row = first_row + threadIdx.x; row < last_row; row += SEGMENT_THREADS) {
        const u64 end = offsets[row + 1];
        if (offsets[row] < end) {
            marks[staged((u32)(end - 1 - tile))] = row;
        } else {
            y[row] = 0;
        }
    }
}

// Reads 12 bytes an entry and 4 a row in f64, each once, and writes 8 a row; a block takes a tile of entries. The
// rows from tile_rows[t] to before tile_rows[t + 1] end in tile t.
extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS) merge_apply(
    T* y, u32* open_rows, T* open_sums, const u32* tile_rows, const Offset* offsets, const u32* columns,
    const T* values, const T* x, u64 n) {
    FEMTILE_SHARED u32 marks[STAGED];
    FEMTILE_SHARED T products[STAGED];
    const u64 tile = blockIdx.x * (u64)TILE;
    const u32 first_row = tile_rows[blockIdx.x], last_row = tile_rows[blockIdx.x + 1];
    Loaded loaded;
    loaded.load(columns, values, tile, n);
    for (u32 place = threadIdx.x; place < STAGED; place += SEGMENT_THREADS) marks[place] = NO_ROW;
    __syncthreads();
    mark_ends(marks, y, offsets, tile, first_row, last_row);
    loaded.stage_products(products, x);
    __syncthreads();
    u32 end_of[PER_THREAD];
    T term[PER_THREAD];
#pragma unroll
    for (u32 k = 0; k < PER_THREAD; ++k) {
        end_of[k] = marks[staged(threadIdx.x * PER_THREAD + k)];
        term[k] = products[staged(threadIdx.x * PER_THREAD + k)];
    }
    const T open = sum_rows<false>(y, end_of, term);
    if (threadIdx.x == SEGMENT_THREADS - 1) {
        open_rows[blockIdx.x] = blockIdx.x + 1 < gridDim.x ? last_row : NO_ROW;
        open_sums[blockIdx.x] = open;
    }
}
