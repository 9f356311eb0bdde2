// The three parts of a matrix whose rows follow each other patch by patch; see `PatchMatrix` on the host.
#include "lanes.cuh"

typedef unsigned short u16;

// Threads of a block that has a patch.
constexpr u32 OF_PATCH = 128;

// The patch of each row, a block a patch.
extern "C" __global__ void amg_patch_of_row(u32* patch, const u32* starts) {
    const u32 end = starts[blockIdx.x + 1];
    for (u32 row = starts[blockIdx.x] + threadIdx.x; row < end; row += blockDim.x) patch[row] = blockIdx.x;
}

// Whether an entry is kept within a patch: not on the diagonal, and where `is_upper` above it.
__device__ inline bool is_inside(u32 column, u64 row, u32 begin, u32 end, u32 is_upper) {
    return column >= begin && column < end && (is_upper ? column > row : column != row);
}

// Entries of each row within its patch and beyond it, and whether there are any beyond.
extern "C" __global__ void amg_patch_count(
    u32* inside, u32* outside, u32* has_outside, const u32* patch, const u32* starts, Rows a, u32 is_upper) {
    const u64 row = thread_of_grid();
    if (row >= a.n) return;
    const u32 begin = starts[patch[row]], end = starts[patch[row] + 1];
    u32 n_inside = 0, n_outside = 0;
    for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        const u32 column = a.columns[e];
        n_inside += is_inside(column, row, begin, end, is_upper);
        n_outside += column < begin || column >= end;
    }
    inside[row] = n_inside;
    outside[row] = n_outside;
    has_outside[row] = n_outside > 0;
}

// Entries of each patch whose rows are as long as the longest, a block a patch.
extern "C" __global__ void amg_patch_widths(u32* sizes, const u32* inside, const u32* starts) {
    FEMTILE_SHARED u32 widths[OF_PATCH];
    const u32 begin = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    u32 width = 0;
    for (u32 row = begin + threadIdx.x; row < end; row += OF_PATCH) width = max(width, inside[row]);
    widths[threadIdx.x] = width;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (u32 i = 1; i < OF_PATCH; i++) width = max(width, widths[i]);
    sizes[blockIdx.x] = width * (end - begin);
}

// The rows of a patch, first entries first, filled with zeros on the diagonal, a block a patch.
extern "C" __global__ void amg_patch_fill_ell(
    u16* columns, T* values, const u32* places, const u32* starts, Rows a) {
    const u32 begin = starts[blockIdx.x], end = starts[blockIdx.x + 1], n = end - begin;
    for (u32 row = begin + threadIdx.x; row < end; row += blockDim.x) {
        u32 at = places[blockIdx.x] + row - begin;
        for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
            if (!is_inside(a.columns[e], row, begin, end, 0)) continue;
            columns[at] = (u16)(a.columns[e] - begin);
            values[at] = a.values[e];
            at += n;
        }
        for (; at < places[blockIdx.x + 1]; at += n) {
            columns[at] = (u16)(row - begin);
            values[at] = 0;
        }
    }
}

// The rows of patches one after another; with `rows` also the row of each entry.
extern "C" __global__ void amg_patch_fill(
    u16* rows, u16* columns, T* values, const u32* places, const u32* patch, const u32* starts, Rows a, u32 is_upper) {
    const u64 row = thread_of_grid();
    if (row >= a.n) return;
    const u32 begin = starts[patch[row]], end = starts[patch[row] + 1];
    u32 at = places[row];
    for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        if (!is_inside(a.columns[e], row, begin, end, is_upper)) continue;
        if (rows != 0) rows[at] = (u16)(row - begin);
        columns[at] = (u16)(a.columns[e] - begin);
        values[at] = a.values[e];
        ++at;
    }
}

// Entries that join two patches: row i has the number `numbers[i]` among those that have any.
extern "C" __global__ void amg_patch_outside(
    u32* rows, u32* offsets, u32* columns, T* values, const u32* numbers, const u32* begins, const u32* patch,
    const u32* starts, Rows a) {
    const u64 row = thread_of_grid();
    if (row > a.n) return;
    if (row == a.n) {
        offsets[numbers[row]] = begins[row];
        return;
    }
    u32 at = begins[row];
    if (at == begins[row + 1]) return;
    rows[numbers[row]] = (u32)row;
    offsets[numbers[row]] = at;
    const u32 begin = starts[patch[row]], end = starts[patch[row] + 1];
    for (u32 e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        const u32 column = a.columns[e];
        if (column >= begin && column < end) continue;
        columns[at] = column;
        values[at] = a.values[e];
        ++at;
    }
}

// A vector without structure times the roots of what `scale` are multiples of the reciprocals of.
extern "C" __global__ void amg_patch_start(T* v, const T* scale, u64 n) {
    const u64 i = thread_of_grid();
    if (i >= n) return;
    const u64 bits = mixed(i);
    const double size = 0.5 + (double)(bits >> 40) * (1.0 / 16777216.0);
    v[i] = (T)(bits >> 39 & 1 ? -size : size) * (T)(1.0 / sqrt((double)scale[i]));
}
