// Rows of a rank: columns of its own unknowns, then those of its ghosts, which the last rows alone have.
#include "lanes.cuh"

// Where a row of `border`, whose first row is row `first`, begins and ends.
__device__ inline Range beside(Rows border, u64 first, u64 row) {
    Range range = {0, 0};
    if (row >= first) range = {border.offsets[row - first], border.offsets[row - first + 1]};
    return range;
}

// Where each row of both begins, and the end: one thread for each of n + 1.
extern "C" __global__ void amg_joined_offsets(u32* offsets, Rows own, Rows border, u64 first) {
    const u64 row = thread_of_grid();
    if (row <= own.n) offsets[row] = own.offsets[row] + (row >= first ? border.offsets[row - first] : 0);
}

// The rows of both.
extern "C" __global__ void amg_joined(
    u32* columns, T* values, const u32* offsets, Rows own, Rows border, u64 first) {
    const u64 row = thread_of_grid();
    if (row >= own.n) return;
    u32 at = offsets[row];
    for (u32 e = own.offsets[row]; e < own.offsets[row + 1]; ++e, ++at) {
        columns[at] = own.columns[e];
        values[at] = own.values[e];
    }
    const Range others = beside(border, first, row);
    for (u32 e = others.begin; e < others.end; ++e, ++at) {
        columns[at] = (u32)own.n + border.columns[e];
        values[at] = border.values[e];
    }
}

// The rows of own columns with entries of ghosts added to the diagonal: the product with constants is that of all columns.
extern "C" __global__ void amg_lumped(T* values, Rows own, Rows border, u64 first) {
    const u64 row = thread_of_grid();
    if (row >= own.n) return;
    T lump = 0;
    const Range others = beside(border, first, row);
    for (u32 e = others.begin; e < others.end; ++e) lump += border.values[e];
    for (u32 e = own.offsets[row]; e < own.offsets[row + 1]; ++e) {
        values[e] = own.columns[e] == row ? own.values[e] + lump : own.values[e];
    }
}

// For each entry of the rows of both its column where it smooths prolongators, or NONE: as `strong` says of own columns; of
// ghosts where |a_ij|^2 > of_smoothing a_ii a_jj.
extern "C" __global__ void amg_joined_strong(
    u32* marks, const u32* strong, const u32* own_offsets, const T* diagonal, Rows a, T of_smoothing) {
    const u64 row = thread_of_grid();
    if (row >= a.n) return;
    u32 own = own_offsets[row];
    const T least = of_smoothing * diagonal[row];
    for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        const u32 column = a.columns[e];
        if (column < a.n) {
            marks[e] = strong[own++];
        } else {
            const T size = a.values[e] * a.values[e];
            marks[e] = size > least * diagonal[column] ? column : NONE;
        }
    }
}

// Clears the marks of parts that rows beside ghosts, or their neighbours, are in: rows of `own` from `first` on.
extern "C" __global__ void amg_inner_parts(u32* is_inner, const u32* part, Rows own, Rows border, u64 first) {
    const u64 row = first + thread_of_grid();
    if (row >= own.n) return;
    const Range others = beside(border, first, row);
    if (others.begin == others.end) return;
    for (u32 e = own.offsets[row]; e < own.offsets[row + 1]; ++e) {
        const u32 found = part[own.columns[e]];
        if (found != NONE) atomicMin(&is_inner[found], 0u);
    }
}

// The part of each node by numbers that begin with the inner parts, of which there are n_inner.
extern "C" __global__ void amg_inner_first(
    u32* to, const u32* part, const u32* is_inner, const u32* starts, u64 n_inner, u64 n) {
    const u64 i = thread_of_grid();
    if (i >= n) return;
    const u32 found = part[i];
    if (found == NONE) {
        to[i] = NONE;
    } else {
        to[i] = is_inner[found] != 0 ? starts[found] : (u32)n_inner + found - starts[found];
    }
}

// Where each row of `a` and then of `more` begins, and the end: one thread for each.
extern "C" __global__ void amg_stacked_offsets(u32* offsets, Rows a, Rows more) {
    const u64 row = thread_of_grid();
    if (row <= a.n) {
        offsets[row] = a.offsets[row];
    } else if (row <= a.n + more.n) {
        offsets[row] = a.offsets[a.n] + more.offsets[row - a.n];
    }
}

// The entries of `a`, whose columns from n_own on get other numbers, then those of `more`.
extern "C" __global__ void amg_stacked(
    u32* columns, T* values, const u32* numbers, Rows a, Rows more, u64 n_own) {
    const u64 i = thread_of_grid();
    const u64 n = a.offsets[a.n];
    if (i < n) {
        const u32 column = a.columns[i];
        columns[i] = column < n_own ? column : numbers[column - n_own];
        values[i] = a.values[i];
    } else if (i < n + more.offsets[more.n]) {
        columns[i] = more.columns[i - n];
        values[i] = more.values[i - n];
    }
}

// Numbers, then more of them: n_own of n.
extern "C" __global__ void amg_followed(u32* to, const u32* own, const u32* more, u64 n_own, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) to[i] = i < n_own ? own[i] : more[i - n_own];
}

// Values, then more of them: n_own of n.
extern "C" __global__ void amg_followed_values(T* to, const T* own, const T* more, u64 n_own, u64 n) {
    const u64 i = thread_of_grid();
    if (i < n) to[i] = i < n_own ? own[i] : more[i - n_own];
}
