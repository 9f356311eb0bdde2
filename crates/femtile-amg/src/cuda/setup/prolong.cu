// The prolongator and its transpose.
#include "lanes.cuh"

// The constant, cut to parts and of length one on each: the root of a node's share of the weight of its part.
extern "C" __global__ void amg_tentative(T* q, const u32* part, const u32* weights, const u32* sums, u64 n) {
    const u64 i = thread_of_grid();
    if (i >= n) return;
    const double weight = weights == 0 ? 1.0 : (double)weights[i];
    q[i] = part[i] == NONE ? 0 : (T)sqrt(weight / (double)sums[part[i]]);
}

// Parts that a row and its strong neighbours are in; none where the row is in none.
extern "C" __global__ void amg_prolong_count(
    u32* lengths, const u32* offsets, const u32* strong, const u32* part, u64 n) {
    const u64 row = thread_of_grid();
    if (row >= n) return;
    const u32 own = part[row];
    u32 found = own == NONE ? 0 : 1;
    for (u32 e = offsets[row]; own != NONE && e < offsets[row + 1]; ++e) {
        const u32 other = strong[e] == NONE ? NONE : part[strong[e]];
        bool is_new = other != NONE && other != own;
        for (u32 f = offsets[row]; is_new && f < e; ++f) is_new = strong[f] == NONE || part[strong[f]] != other;
        found += is_new;
    }
    lengths[row] = found;
}

// Adds to an entry of a row of `n` entries so far, whose columns ascend; gives their number.
__device__ inline u32 add(u32* columns, T* values, u32 n, u32 column, T value) {
    u32 at = n;
    while (at > 0 && columns[at - 1] > column) --at;
    if (at > 0 && columns[at - 1] == column) {
        values[at - 1] += value;
        return n;
    }
    for (u32 i = n; i > at; --i) {
        columns[i] = columns[i - 1];
        values[i] = values[i - 1];
    }
    columns[at] = column;
    values[at] = value;
    return n + 1;
}

// (I - D_F^-1 A_F / (bound / D_F)) q, where A_F has the weak entries on its diagonal D_F. `share` times the absolute
// sum is what D_F is raised to, `damping` what it is then multiplied by. A weak entry counts times b_j / b_i, the roots of
// the weights of nodes, so that P reproduces b. A row whose weak entries outweigh its diagonal stays as it is.
extern "C" __global__ void amg_prolong_fill(
    u32* columns, T* values, const u32* starts, const u32* strong, const u32* part, const T* q, const u32* weights,
    Rows a, T share, T damping) {
    const u64 row = thread_of_grid();
    if (row >= a.n || part[row] == NONE) return;
    T own = 0, others = 0;
    for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        if (strong[e] == NONE) {
            const u32 column = a.columns[e];
            const bool is_even = weights == 0 || weights[column] == weights[row];
            own += is_even ? a.values[e] : a.values[e] * (T)sqrt((double)weights[column] / (double)weights[row]);
        } else {
            others += fabs(a.values[e]);
        }
    }
    const T least = share * (own + others);
    const T bound = (least > own ? least : own) * damping;
    const bool is_smoothed = own > 0;
    const T scale = is_smoothed ? 1 / bound : 0;
    columns += starts[row];
    values += starts[row];
    u32 n = add(columns, values, 0, part[row], is_smoothed ? (bound - own) * scale * q[row] : q[row]);
    for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        const u32 other = strong[e];
        if (other == NONE || part[other] == NONE) continue;
        n = add(columns, values, n, part[other], -scale * a.values[e] * q[other]);
    }
}

// Entries of each column.
extern "C" __global__ void amg_column_lengths(u32* lengths, const u32* columns, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) atomicAdd(&lengths[columns[i]], 1u);
}

// Entries to the rows of the transpose, in any order; `taken` counts those that a row has.
extern "C" __global__ void amg_transpose(u32* rows, T* values, u32* taken, const u32* starts, Rows a) {
    const u64 row = thread_of_grid();
    if (row >= a.n) return;
    for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        const u32 column = a.columns[e];
        const u32 at = starts[column] + atomicAdd(&taken[column], 1u);
        rows[at] = (u32)row;
        values[at] = a.values[e];
    }
}

// The entries of rows by ascending columns, which all differ: each goes behind those that are smaller.
extern "C" __global__ void amg_sort_rows(u32* columns, T* values, Rows a) {
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const u32 column = a.columns[e];
        u32 at = range.begin;
        for (u32 f = range.begin; f < range.end; ++f) at += a.columns[f] < column;
        columns[at] = column;
        values[at] = a.values[e];
    }
}
