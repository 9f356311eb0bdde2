// The pattern of a matrix of linear elements: nodes i and j that share a cell.
//
// The cells of each node are listed and sorted, then a few lanes of a warp collect the distinct nodes of the cells of a
// row in a table, and write them in ascending order. The results do not depend on the order of threads.
#include "table.cuh"

const u32 CORNERS = FEMTILE_CORNERS;

// counts[node] += number of cells of the node.
extern "C" __global__ void incidence_count(u32* counts, const u32* cells, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) atomicAdd(&counts[cells[i]], 1u);
}

// Lists the cells of each node in any order; `counts` is zero before.
extern "C" __global__ void incidence_list(u32* list, u32* counts, const u32* starts, const u32* cells, u64 n) {
    const u64 i = thread_of_grid();
    if (i >= n) return;
    const u32 node = cells[i];
    list[starts[node] + atomicAdd(&counts[node], 1u)] = (u32)(i / CORNERS);
}

// Sifts the entry at `hole` down in a max-heap of n entries.
__device__ inline void sink(u32* heap, u32 hole, u32 n) {
    const u32 value = heap[hole];
    for (;;) {
        u32 child = 2 * hole + 1;
        if (child >= n) break;
        if (child + 1 < n && heap[child + 1] > heap[child]) ++child;
        if (heap[child] <= value) break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = value;
}

// Sorts n numbers: short lists by insertion sort, as they are nearly in order, long ones by heapsort.
__device__ inline void sort(u32* cells, u32 n) {
    if (n <= 64) {
        for (u32 i = 1; i < n; ++i) {
            const u32 cell = cells[i];
            u32 place = i;
            for (; place > 0 && cells[place - 1] > cell; --place) cells[place] = cells[place - 1];
            cells[place] = cell;
        }
        return;
    }
    for (u32 i = n / 2; i > 0; --i) sink(cells, i - 1, n);
    for (u32 last = n - 1; last > 0; --last) {
        const u32 largest = cells[0];
        cells[0] = cells[last];
        cells[last] = largest;
        sink(cells, 0, last);
    }
}

// Sorts the cells of each node; most[0] becomes the largest number of them, most[1] the first node without any.
extern "C" __global__ void incidence_sort(u32* list, u32* most, const u32* starts, u64 n_rows) {
    const u64 row = thread_of_grid();
    u32 n = 0;
    if (row < n_rows) {
        n = starts[row + 1] - starts[row];
        sort(list + starts[row], n);
        if (n == 0) atomicMin(&most[1], (u32)row);
    }
    for (int half = 16; half > 0; half /= 2) n = max(n, __shfl_xor_sync(FULL_WARP, n, half));
    if (threadIdx.x % 32 == 0 && n > 0) atomicMax(&most[0], n);
}

// Puts the nodes of the cells of a row into its table and returns the number of those that this lane met first.
__device__ inline u32 collect(u32* keys, u32 slots, const Range& range, const u32* list, const u32* cells) {
    for (u32 s = lane_of_row(); s < slots; s += LANES) keys[s] = NONE;
    __syncwarp();
    u32 n = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const u64 first = (u64)CORNERS * list[e];
#pragma unroll
        for (u32 a = 0; a < CORNERS; ++a) {
            bool is_new = false;
            place(keys, slots, cells[first + a], is_new);
            n += is_new;
        }
    }
    __syncwarp();
    return n;
}

// Columns of each row. A table has more slots than the cells of a row have corners.
extern "C" __global__ void pattern_count(
    u32* lengths, const u32* starts, const u32* list, const u32* cells, u64 n_rows, u32 slots) {
    FEMTILE_DYNAMIC_SHARED(u32, room);
    u32* const keys = room + threadIdx.x / LANES * slots;
    const u64 row = row_of_lanes();
    const u32 n = lanes_sum(collect(keys, slots, entries(starts, row, n_rows), list, cells));
    if (row < n_rows && lane_of_row() == 0) lengths[row] = n;
}

// The columns of each row, ascending.
extern "C" __global__ void pattern_fill(
    u32* columns, const u32* offsets, const u32* starts, const u32* list, const u32* cells, u64 n_rows, u32 slots) {
    FEMTILE_DYNAMIC_SHARED(u32, room);
    u32* const keys = room + threadIdx.x / LANES * slots;
    u32* const found = room + (blockDim.x + threadIdx.x) / LANES * slots;
    const u64 row = row_of_lanes();
    collect(keys, slots, entries(starts, row, n_rows), list, cells);
    u32 n = 0;
    for (u32 s = lane_of_row(); s < slots; s += LANES) n += keys[s] != NONE;
    u32 until = n;
    for (u32 step = 1; step < LANES; step *= 2) {
        const u32 other = __shfl_up_sync(FULL_WARP, until, step, (int)LANES);
        if (lane_of_row() >= step) until += other;
    }
    u32 at = until - n;
    for (u32 s = lane_of_row(); s < slots; s += LANES) {
        if (keys[s] != NONE) found[at++] = keys[s];
    }
    __syncwarp();
    if (row >= n_rows) return;
    const u32 begin = offsets[row], length = offsets[row + 1] - begin;
    for (u32 i = lane_of_row(); i < length; i += LANES) {
        const u32 column = found[i];
        u32 rank = 0;
        for (u32 j = 0; j < length; ++j) rank += found[j] < column;
        columns[begin + rank] = column;
    }
}
