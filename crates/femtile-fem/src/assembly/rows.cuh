// Access to cells and rows by a thread a row.
#pragma once
#include "element.cuh"

__device__ inline void load_cell(u32 (&nodes)[CORNERS], const u32* cells, u64 cell) {
#if FEMTILE_CORNERS == 4
    const Pack<u32> pack = load_pack(cells, cell);
#pragma unroll
    for (u32 a = 0; a < CORNERS; ++a) nodes[a] = pack.value[a];
#else
#pragma unroll
    for (u32 a = 0; a < CORNERS; ++a) nodes[a] = cells[CORNERS * cell + a];
#endif
}

// Position of a column in a row that contains it; columns ascend.
__device__ inline u32 position(const u32* columns, u32 length, u32 wanted) {
    u32 low = 0, high = length;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (columns[middle] <= wanted) low = middle;
        else high = middle;
    }
    return low;
}

__device__ inline u64 thread_number() {
    return blockIdx.x * (u64)blockDim.x + threadIdx.x;
}
