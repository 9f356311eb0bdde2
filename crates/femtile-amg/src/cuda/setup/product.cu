// C = A B for sparse matrices, row by row with a table of columns in shared memory.
//
// Rows of B have whole blocks of FEMTILE_COLUMNS neighbouring columns; a block has one key. Terms of an entry are added by the
// order of the row of A: the bits of C are the same in every run.
#include "table.cuh"

// More terms than any table has slots; sums of a warp of them fit into 32 bits.
const u32 MANY = 1u << 25;
const u32 COLUMNS = FEMTILE_COLUMNS;

// Blocks of terms of each row, the most of them; of rows with MANY or more some number from MANY on.
extern "C" __global__ void amg_product_bound(u32* most, const u32* b_offsets, Rows a) {
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    u32 n = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const u32 middle = a.columns[e];
        n = min(n, MANY) + min((b_offsets[middle + 1] - b_offsets[middle]) / COLUMNS, MANY);
    }
    n = lanes_sum(n);
    if (lane_of_row() == 0) atomicMax(most, n);
}

// Entries of each row of C, and the most blocks of them.
extern "C" __global__ void amg_product_count(
    u32* lengths, u32* most, const u32* b_offsets, const u32* b_columns, Rows a, u32 slots) {
    FEMTILE_DYNAMIC_SHARED(u32, room);
    u32* keys = room + threadIdx.x / LANES * slots;
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    for (u32 s = lane_of_row(); s < slots; s += LANES) keys[s] = NONE;
    __syncwarp();
    u32 n = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const u32 middle = a.columns[e];
        for (u32 f = b_offsets[middle]; f < b_offsets[middle + 1]; f += COLUMNS) {
            bool is_new = false;
            place(keys, slots, b_columns[f] / COLUMNS, is_new);
            n += is_new;
        }
    }
    n = lanes_sum(n);
    if (row >= a.n || lane_of_row() != 0) return;
    lengths[row] = COLUMNS * n;
    atomicMax(most, n);
}

// The rows of C, blocks in any order.
extern "C" __global__ void amg_product_fill(
    u32* columns, T* values, const u32* starts, Rows a, Rows b, u32 slots) {
    FEMTILE_DYNAMIC_SHARED(u32, room);
    const u32 own = threadIdx.x / LANES;
    u32* keys = room + own * slots;
    T* sums = reinterpret_cast<T*>(room + blockDim.x / LANES * slots) + own * slots * COLUMNS;
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    for (u32 s = lane_of_row(); s < slots; s += LANES) keys[s] = NONE;
    for (u32 s = lane_of_row(); s < slots * COLUMNS; s += LANES) sums[s] = 0;
    __syncwarp();
    for (u32 first = range.begin; __any_sync(FULL_WARP, first < range.end); first += LANES) {
        // Each lane looks one row of B up, which all of them then take together.
        const u32 e = first + lane_of_row();
        u32 begin = 0, end = 0;
        T factor = 0;
        if (e < range.end) {
            const u32 middle = a.columns[e];
            factor = a.values[e];
            begin = b.offsets[middle];
            end = b.offsets[middle + 1];
        }
        for (u32 turn = 0; turn < LANES; ++turn) {
            const u32 b_begin = __shfl_sync(FULL_WARP, begin, (int)turn, (int)LANES);
            const u32 b_end = __shfl_sync(FULL_WARP, end, (int)turn, (int)LANES);
            const T by = __shfl_sync(FULL_WARP, factor, (int)turn, (int)LANES);
            for (u32 f = b_begin + lane_of_row(); f < b_end; f += LANES) {
                bool is_new;
                const u32 column = b.columns[f];
                sums[place(keys, slots, column / COLUMNS, is_new) * COLUMNS + column % COLUMNS] += by * b.values[f];
            }
            __syncwarp();
        }
    }
    u32 n = 0;
    for (u32 s = lane_of_row(); s < slots; s += LANES) n += keys[s] != NONE;
    u32 before = n;
    for (u32 step = 1; step < LANES; step *= 2) {
        const u32 other = __shfl_up_sync(FULL_WARP, before, step, (int)LANES);
        if (lane_of_row() >= step) before += other;
    }
    if (row >= a.n) return;
    u32 at = starts[row] + (before - n) * COLUMNS;
    for (u32 s = lane_of_row(); s < slots; s += LANES) {
        if (keys[s] == NONE) continue;
        for (u32 i = 0; i < COLUMNS; ++i, ++at) {
            columns[at] = keys[s] * COLUMNS + i;
            values[at] = sums[s * COLUMNS + i];
        }
    }
}
