// Graphs without some of their connections, and numbers in another order.
#include "lanes.cuh"

// Marks nodes that no entry of the matrix joins to others.
extern "C" __global__ void amg_alone(u32* is_alone, Rows a) {
    const u64 row = thread_of_grid();
    if (row >= a.n) return;
    u32 found = 1;
    for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        if (a.columns[e] != row && a.values[e] != 0) found = 0;
    }
    is_alone[row] = found;
}

// Whether a connection stays: nodes are not joined to themselves, and those marked to none.
__device__ inline bool stays(const u32* is_alone, u64 node, u32 other) {
    return other != node && (is_alone == 0 || (is_alone[node] == 0 && is_alone[other] == 0));
}

extern "C" __global__ void amg_graph_count(
    u32* lengths, const u32* is_alone, const u32* offsets, const u32* near, u64 n) {
    const u64 node = thread_of_grid();
    if (node >= n) return;
    u32 found = 0;
    for (u32 e = offsets[node]; e < offsets[node + 1]; ++e) found += stays(is_alone, node, near[e]);
    lengths[node] = found;
}

extern "C" __global__ void amg_graph_fill(
    u32* kept, const u32* starts, const u32* is_alone, const u32* offsets, const u32* near, u64 n) {
    const u64 node = thread_of_grid();
    if (node >= n) return;
    u32 at = starts[node];
    for (u32 e = offsets[node]; e < offsets[node + 1]; ++e) {
        if (stays(is_alone, node, near[e])) kept[at++] = near[e];
    }
}

extern "C" __global__ void amg_gather(u32* to, const u32* from, const u32* order, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) to[i] = from[order[i]];
}

extern "C" __global__ void amg_gather_values(T* to, const T* from, const u32* order, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) to[i] = from[order[i]];
}

// Lengths of the rows of a matrix in another order.
extern "C" __global__ void amg_order_lengths(u32* lengths, const u32* order, const u32* offsets, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) lengths[i] = offsets[order[i] + 1] - offsets[order[i]];
}

// Those rows, n of them; columns get the numbers `places`, or keep theirs.
extern "C" __global__ void amg_order_fill(
    u32* columns, T* values, const u32* starts, const u32* order, const u32* places, Rows a, u64 n) {
    const u64 row = row_of_lanes();
    const u32 from = row < n ? order[row] : 0;
    const u32 begin = row < n ? a.offsets[from] : 0, end = row < n ? a.offsets[from + 1] : 0;
    for (u32 e = begin + lane_of_row(); e < end; e += LANES) {
        const u32 at = starts[row] + (e - begin);
        columns[at] = places == 0 ? a.columns[e] : places[a.columns[e]];
        values[at] = a.values[e];
    }
}
