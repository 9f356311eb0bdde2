// Strength of connection by evolution, for rows whose positive entries hide the direction of strong coupling, and the rows of
// the next level that come from such.
#include "evolution.cuh"

// The largest absolute row sum of D^-1 A, as the bits of a double: those of positive numbers ascend with them.
extern "C" __global__ void amg_largest_sum(u64* largest, const T* diagonal, Rows a) {
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    double sum = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) sum += fabs((double)a.values[e]);
    sum = lanes_sum(sum);
    if (row < a.n && lane_of_row() == 0) atomicMax(largest, (u64)__double_as_longlong(sum / (double)diagonal[row]));
}

// Marks a matrix with a positive entry whose square exceeds a share of those of the diagonal, which goes on with ghosts where
// columns do.
extern "C" __global__ void amg_opposed(u32* is_opposed, const T* diagonal, Rows a, T share) {
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    bool found = false;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const T value = a.values[e];
        const u32 column = a.columns[e];
        const bool is_first = column < row || column >= a.n;
        found |= is_first && value > 0 && value * value > share * diagonal[row] * diagonal[column];
    }
    if (found) atomicMax(is_opposed, 1u);
}

// What a unit vector at a row becomes at the column of its entry e by two steps of relaxation:
//   (I - w D^-1 A)^2 e_i, where A is symmetric.
__device__ inline double evolved(Rows a, const T* diagonal, u64 row, u32 e, double omega) {
    const u32 column = a.columns[e];
    double square = 0;
    for (u32 f = a.offsets[row]; f < a.offsets[row + 1]; ++f) {
        const u32 between = a.columns[f], place = place_of(a, between, column);
        if (place != NONE) square += (double)a.values[f] / (double)diagonal[between] * (double)a.values[place];
    }
    const double steps = omega * omega * square - 2.0 * omega * (double)a.values[e];
    return (column == row ? 1.0 : 0.0) + steps / (double)diagonal[column];
}

// The near-nullspace at a row: the root of its weight.
__device__ inline double constant_at(const u32* weights, u64 row) {
    return weights == 0 ? 1.0 : sqrt((double)weights[row]);
}

// Of the entries of doubtful rows 1 for those that are near, others 0: their measure |1 - z_i b_j / (b_i z_j)|, where z is
// what a unit vector becomes, is at most `most` times the smallest one of the entries above of_graph a_ii a_jj. Values below
// `nothing`, relative to that at the row, are no connection. A warp takes a row.
extern "C" __global__ void amg_evolve(
    T* near, const u32* is_doubtful, const u32* weights, const u64* largest, const T* diagonal, Rows a, T of_graph,
    double most, double nothing) {
    const u64 row = row_of_lanes();
    if (row >= a.n || is_doubtful[row] == 0) return;
    const Range range = entries(a.offsets, row, a.n);
    const double omega = 1.0 / __longlong_as_double((long long)*largest);
    double own = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const double value = evolved(a, diagonal, row, e, omega);
        near[e] = (T)value;
        if (a.columns[e] == row) own = value / constant_at(weights, row);
    }
    own = lanes_sum(own);
    const double none = 1e300;
    double nearest = none;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const u32 column = a.columns[e];
        const T size = a.values[e] * a.values[e];
        const double ratio = (double)near[e] / (own * constant_at(weights, column));
        const bool is_connected = column != row && a.values[e] != 0 && ratio > nothing;
        const double measure = fabs(1.0 - 1.0 / ratio);
        near[e] = is_connected ? (T)measure : (T)-1;
        const bool is_large = size > of_graph * diagonal[row] * diagonal[column] && size > 0;
        if (is_connected && is_large) nearest = nearest < measure ? nearest : measure;
    }
    nearest = -lanes_max(-nearest);
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        near[e] = near[e] >= 0 && (double)near[e] <= most * nearest ? 1 : 0;
    }
}

// For each part, how many more of its nodes are marked than not, from zeros; negative numbers wrap.
extern "C" __global__ void amg_votes(u32* votes, const u32* part, const u32* marks, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n && part[i] != NONE) atomicAdd(&votes[part[i]], marks[i] != 0 ? 1u : 0xffffffffu);
}

// Turns votes into marks, 1 where there are more for it.
extern "C" __global__ void amg_outvoted(u32* votes, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) votes[i] = (int)votes[i] > 0 ? 1u : 0u;
}
