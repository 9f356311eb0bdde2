// Levels whose nodes have several rows, with several vectors as near-nullspace.
#include "lanes.cuh"

// Sums of sizes of rows; and 1 if one is more than `times` that of the matrix scaled to a diagonal of ones.
extern "C" __global__ void amg_node_sums(T* sums, u32* is_lopsided, const T* diagonal, Rows a, double times) {
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    double plain = 0, scaled = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const double size = fabs((double)a.values[e]);
        plain += size;
        scaled += size / sqrt((double)diagonal[a.columns[e]]);
    }
    plain = lanes_sum(plain);
    scaled = lanes_sum(scaled);
    if (row >= a.n || lane_of_row() != 0) return;
    sums[row] = (T)plain;
    if (plain > times * scaled * sqrt((double)diagonal[row])) atomicMax(is_lopsided, 1u);
}

// The squares of values.
extern "C" __global__ void amg_node_squares(T* squares, const T* values, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) squares[i] = values[i] * values[i];
}

// Frobenius norms of blocks from their squares, and those of the blocks of the diagonal.
extern "C" __global__ void amg_node_norms(T* norms, T* diagonal, Rows squares) {
    const u64 node = row_of_lanes();
    const Range range = entries(squares.offsets, node, squares.n);
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const T norm = sqrt(squares.values[e]);
        norms[e] = norm;
        if (squares.columns[e] == node) diagonal[node] = norm;
    }
}

// P = Q - W A Q from A Q with the diagonal W, damping over the raised diagonal of A. Columns of a row of Q are neighbours; rows
// of nodes in no part have none, and are zero in P.
extern "C" __global__ void amg_node_smooth(T* p, const T* inverse, Rows q, Rows aq, T damping) {
    const u64 row = row_of_lanes();
    const Range range = entries(aq.offsets, row, aq.n);
    if (row >= aq.n) return;
    const u32 begin = q.offsets[row], n = q.offsets[row + 1] - begin;
    const u32 first = n > 0 ? q.columns[begin] : 0;
    const T weight = damping * inverse[row];
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        const u32 at = aq.columns[e] - first;
        const T tentative = at < n ? q.values[begin + at] : 0;
        p[e] = n == 0 ? 0 : tentative - weight * aq.values[e];
    }
}

// Values with ones on the diagonal of rows of zeros.
extern "C" __global__ void amg_node_ones(T* values, Rows a) {
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    u32 n = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) n += a.values[e] != 0;
    n = lanes_sum(n);
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        values[e] = n == 0 && a.columns[e] == row ? 1 : a.values[e];
    }
}

// 1 if the diagonal entry of a row of the next level is at most `share` of its terms, r_j a_jj r_j with the diagonal of the level.
extern "C" __global__ void amg_node_energies(u32* is_lost, const T* diagonal, Rows r, Rows next, double share) {
    const u64 row = row_of_lanes();
    double terms = 0, own = 0;
    const Range of_restriction = entries(r.offsets, row, r.n);
    for (u32 e = of_restriction.begin + lane_of_row(); e < of_restriction.end; e += LANES) {
        const double value = (double)r.values[e];
        terms += value * value * (double)diagonal[r.columns[e]];
    }
    const Range range = entries(next.offsets, row, next.n);
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
        if (next.columns[e] == row) own += (double)next.values[e];
    }
    terms = lanes_sum(terms);
    own = lanes_sum(own);
    if (row < next.n && lane_of_row() == 0 && fabs(own) <= share * terms) atomicMax(is_lost, 1u);
}
