// Patches: groups of units, which are aggregates and nodes in none.
#include "lanes.cuh"

extern "C" __global__ void amg_units_alone(u32* marks, const u32* part, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) marks[i] = part[i] == NONE;
}

// The unit of each node: its part, or a number of its own after all parts; and a matrix with a one there.
extern "C" __global__ void amg_units(
    u32* unit, u32* offsets, T* ones, const u32* part, const u32* numbers, u32 n_parts, u64 n) {
    const u64 i = thread_of_grid();
    if (i > n) return;
    offsets[i] = (u32)i;
    if (i == n) return;
    unit[i] = part[i] == NONE ? n_parts + numbers[i] : part[i];
    ones[i] = 1;
}

// The move that each unit of a patch with more than `most` rows would rather make, if any: where it goes, and a key, the
// largest of which in a patch is made: whether it fits there, then neighbours there less those at home, then the lowest unit.
extern "C" __global__ void amg_exchange_wish(
    u64* keys, u32* targets, u64* best, const u32* part, const u32* sizes, const u32* weights, const u32* offsets,
    const u32* near, u32 most, u64 n) {
    const u64 unit = row_of_lanes();
    const Range range = entries(offsets, unit, n);
    const u32 own = unit < n ? part[unit] : NONE;
    const bool is_heavy = own != NONE && sizes[own] > most;
    u32 at_home = 0;
    for (u32 e = range.begin + lane_of_row(); is_heavy && e < range.end; e += LANES) at_home += part[near[e]] == own;
    at_home = lanes_sum(at_home);
    u64 found = 0;
    for (u32 e = range.begin + lane_of_row(); is_heavy && e < range.end; e += LANES) {
        const u32 to = part[near[e]];
        if (to == NONE || to == own) continue;
        const u32 size = sizes[to] + weights[unit];
        if (size >= sizes[own]) continue;
        u32 votes = 0;
        for (u32 f = range.begin; f < range.end; ++f) votes += part[near[f]] == to;
        const u64 gain = (u64)((1u << 20) + votes - at_home);
        const u64 key = (u64)(size <= most) << 53 | gain << 32 | (NONE - to);
        found = found < key ? key : found;
    }
    found = lanes_max(found);
    if (unit >= n || lane_of_row() != 0) return;
    targets[unit] = NONE - (u32)found;
    keys[unit] = found == 0 ? 0 : (found >> 32 << 32) | (NONE - (u32)unit);
    if (found != 0) atomicMax(&best[own], keys[unit]);
}

// Whether the move of a unit is that of its patch.
__device__ inline bool is_made(const u64* keys, const u64* best, const u32* part, u64 unit) {
    return keys[unit] != 0 && keys[unit] == best[part[unit]];
}

// What a patch is offered: the key of the move, then the lowest patch that gives up a unit.
__device__ inline u64 offer(u64 key, u32 from) { return (key >> 32 << 32) | (NONE - from); }

// The best offer that each patch gets.
extern "C" __global__ void amg_exchange_offer(
    u64* taken, const u64* keys, const u64* best, const u32* targets, const u32* part, u64 n) {
    const u64 unit = thread_of_grid();
    if (unit >= n || !is_made(keys, best, part, unit)) return;
    atomicMax(&taken[targets[unit]], offer(keys[unit], part[unit]));
}

// Makes the moves that patches take; `n_moved` counts them.
extern "C" __global__ void amg_exchange_move(
    u32* part, u32* sizes, u32* n_moved, const u64* keys, const u64* best, const u64* taken, const u32* targets,
    const u32* weights, u64 n) {
    const u64 unit = thread_of_grid();
    if (unit >= n || !is_made(keys, best, part, unit)) return;
    const u32 from = part[unit], to = targets[unit], weight = weights[unit];
    if (taken[to] != offer(keys[unit], from)) return;
    part[unit] = to;
    atomicAdd(&sizes[to], weight);
    atomicAdd(&sizes[from], 0u - weight);
    atomicAdd(n_moved, 1u);
}

// The nodes of units, rows of `members`, one after another from the place of each unit on; and the place of each node.
extern "C" __global__ void amg_units_place(u32* rows, u32* places, const u32* first, Rows members) {
    const u64 unit = row_of_lanes();
    const Range range = entries(members.offsets, unit, members.n);
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const u32 node = members.columns[e], place = first[unit] + (e - range.begin);
        rows[place] = node;
        places[node] = place;
    }
}
