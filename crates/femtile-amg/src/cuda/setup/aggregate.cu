// Groups of strongly connected nodes.
//
// Nodes have their strong neighbours in `near`, those of a node between two offsets.
#include "evolution.cuh"

// Whether |a_ij|^2 > least a_jj for the entry e of a row i; `least` has a_ii in it.
__device__ inline bool is_strong(Rows a, const T* diagonal, u64 row, u32 e, T least) {
    const T size = a.values[e] * a.values[e];
    return a.columns[e] != row && size > least * diagonal[a.columns[e]] && size > 0;
}

// For each entry that counts its column where |a_ij|^2 > of_smoothing a_ii a_jj, and NONE else; of those above
// of_graph a_ii a_jj how many a row has, and the number of rows that have any.
extern "C" __global__ void amg_strong(
    u32* strong, u32* lengths, u64* n_connected, const T* diagonal, Rows a, Evolution evolution, T of_graph, T of_smoothing) {
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    const T own = row < a.n ? diagonal[row] : 0;
    u32 n = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const bool is_counted = counts(evolution, a, row, e);
        strong[e] = is_counted && is_strong(a, diagonal, row, e, of_smoothing * own) ? a.columns[e] : NONE;
        n += is_counted && is_strong(a, diagonal, row, e, of_graph * own);
    }
    n = lanes_sum(n);
    const bool is_first = row < a.n && lane_of_row() == 0;
    if (is_first) lengths[row] = n;
    const int connected = __syncthreads_count(is_first && n > 0);
    if (threadIdx.x == 0) atomicAdd(n_connected, (u64)connected);
}

// The strong neighbours without gaps.
extern "C" __global__ void amg_near(
    u32* near, const u32* starts, const T* diagonal, Rows a, Evolution evolution, T of_graph) {
    const u64 row = thread_of_grid();
    if (row >= a.n) return;
    u32 at = starts[row];
    for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        const bool is_near = is_strong(a, diagonal, row, e, of_graph * diagonal[row]);
        if (is_near && counts(evolution, a, row, e)) near[at++] = a.columns[e];
    }
}

// A node's standing: what it is, then a number without order, then itself. The largest one near wins.
const u32 KIND = 62;
const u64 OUT = 0, OPEN = 1, ROOT = 2;
__device__ inline u64 kind(u64 standing) { return standing >> KIND; }
__device__ inline u64 as(u64 kind, u64 standing) { return kind << KIND | (standing & ((1ull << KIND) - 1)); }

// All nodes with a strong neighbour are open.
extern "C" __global__ void amg_roots_start(u64* standing, const u32* offsets, const u32* near, u64 n) {
    const u64 row = row_of_lanes();
    const Range range = entries(offsets, row, n);
    if (row >= n || lane_of_row() != 0) return;
    standing[row] = as(range.begin < range.end ? OPEN : OUT, (mixed(row) >> 34) << 32 | row);
}

// The largest standing among a node and its neighbours.
__device__ inline u64 reached(const u64* standing, const u32* offsets, const u32* near, u64 row, u64 n) {
    const Range range = entries(offsets, row, n);
    u64 largest = row < n ? standing[row] : 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const u64 found = standing[near[e]];
        largest = largest < found ? found : largest;
    }
    return lanes_max(largest);
}

extern "C" __global__ void amg_roots_spread(u64* to, const u64* from, const u32* offsets, const u32* near, u64 n) {
    const u64 row = row_of_lanes();
    const u64 largest = reached(from, offsets, near, row, n);
    if (row < n && lane_of_row() == 0) to[row] = largest;
}

// What nodes see where roots are kept apart by one edge.
extern "C" __global__ void amg_roots_copy(u64* to, const u64* from, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) to[i] = from[i];
}

// Open nodes that see none before them become roots, those that see a root are out. `seen` has the largest standing one
// edge less far; `n_open` the number of those that stay open.
extern "C" __global__ void amg_roots_decide(
    u64* standing, u32* n_open, const u64* seen, const u32* offsets, const u32* near, u64 n) {
    const u64 row = row_of_lanes();
    const u64 largest = reached(seen, offsets, near, row, n);
    bool is_open = false;
    if (row < n && lane_of_row() == 0) {
        const u64 own = standing[row];
        if (kind(own) == OPEN) {
            if (largest == own) {
                standing[row] = as(ROOT, own);
            } else if (kind(largest) == ROOT) {
                standing[row] = as(OUT, own);
            } else {
                is_open = true;
            }
        }
    }
    const int count = __syncthreads_count(is_open);
    if (threadIdx.x == 0 && count > 0) atomicAdd(n_open, (u32)count);
}

// Walks of no edge: their number, 1, and in the upper half of the bits whether they end free, at no root and at no neighbour
// of one.
extern "C" __global__ void amg_walks_start(
    u64* walks, const u64* standing, const u32* offsets, const u32* near, u64 n) {
    const u64 row = row_of_lanes();
    const bool is_free = kind(reached(standing, offsets, near, row, n)) != ROOT;
    if (row < n && lane_of_row() == 0) walks[row] = (u64)is_free << 32 | 1;
}

// Of walks from a node that are an edge longer those that end free, and all.
__device__ inline u64 walked(const u64* walks, const u32* offsets, const u32* near, u64 row, u64 n) {
    const Range range = entries(offsets, row, n);
    u64 sum = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) sum += walks[near[e]];
    return lanes_sum(sum);
}

extern "C" __global__ void amg_walks_spread(u64* to, const u64* from, const u32* offsets, const u32* near, u64 n) {
    const u64 row = row_of_lanes();
    const u64 sum = walked(from, offsets, near, row, n);
    if (row < n && lane_of_row() == 0) to[row] = sum;
}

// Nodes that are out open again where at least the share `share` / `of` of their walks ends free; `walks` are an edge shorter.
extern "C" __global__ void amg_gaps_open(
    u64* standing, const u64* walks, const u32* offsets, const u32* near, u32 share, u32 of, u64 n) {
    const u64 row = row_of_lanes();
    const u64 sum = walked(walks, offsets, near, row, n);
    if (row >= n || lane_of_row() != 0) return;
    const u64 own = standing[row], free = sum >> 32, all = sum & 0xffffffffu;
    if (kind(own) == OUT && all > 0 && of * free >= share * all) standing[row] = as(OPEN, own);
}

extern "C" __global__ void amg_roots_mark(u32* is_root, const u64* standing, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) is_root[i] = kind(standing[i]) == ROOT;
}

// Roots, each with its number, and those of their neighbours that no other root has.
extern "C" __global__ void amg_parts_start(
    u32* part, const u64* standing, const u32* numbers, const u32* offsets, const u32* near, u64 n) {
    const u64 row = row_of_lanes();
    const Range range = entries(offsets, row, n);
    u32 highest = 0, lowest = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const u32 other = near[e];
        if (kind(standing[other]) != ROOT) continue;
        highest = max(highest, numbers[other] + 1);
        lowest = max(lowest, NONE - numbers[other]);
    }
    highest = lanes_max(highest);
    lowest = lanes_max(lowest);
    if (row >= n || lane_of_row() != 0) return;
    const bool is_one = highest > 0 && highest - 1 == NONE - lowest;
    part[row] = kind(standing[row]) == ROOT ? numbers[row] : is_one ? highest - 1 : NONE;
}

// A node in no part joins the one that most of its neighbours are in, the first of several.
extern "C" __global__ void amg_parts_join(
    u32* after, const u32* before, const u32* offsets, const u32* near, u64 n) {
    const u64 row = row_of_lanes();
    const Range range = entries(offsets, row, n);
    const u32 own = row < n ? before[row] : 0;
    u64 best = 0;
    for (u32 e = range.begin + lane_of_row(); own == NONE && e < range.end; e += LANES) {
        const u32 part = before[near[e]];
        if (part == NONE) continue;
        u64 votes = 0;
        for (u32 f = range.begin; f < range.end; ++f) votes += before[near[f]] == part;
        const u64 found = votes << 32 | (NONE - part);
        best = best < found ? found : best;
    }
    best = lanes_max(best);
    if (row >= n || lane_of_row() != 0) return;
    after[row] = own != NONE ? own : best > 0 ? NONE - (u32)best : NONE;
}

// Adds up the weights of the nodes of each part; null stands for ones.
extern "C" __global__ void amg_parts_weigh(u32* sums, const u32* part, const u32* weights, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n && part[i] != NONE) atomicAdd(&sums[part[i]], weights == 0 ? 1u : weights[i]);
}

// Gives up parts of fewer than `least` nodes.
extern "C" __global__ void amg_parts_drop(u32* after, const u32* before, const u32* sizes, u32 least, u64 n) {
    const u64 i = thread_of_grid();
    if (i >= n) return;
    const u32 own = before[i];
    after[i] = own != NONE && sizes[own] < least ? NONE : own;
}

// Nodes that no part has taken over stay where they were; parts that have nodes are marked.
extern "C" __global__ void amg_parts_restore(u32* part, u32* is_kept, const u32* before, u64 n) {
    const u64 i = thread_of_grid();
    if (i >= n) return;
    if (part[i] == NONE) part[i] = before[i];
    if (part[i] != NONE) atomicMax(&is_kept[part[i]], 1u);
}

extern "C" __global__ void amg_parts_number(u32* part, const u32* numbers, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n && part[i] != NONE) part[i] = numbers[part[i]];
}
