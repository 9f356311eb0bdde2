// The rows of a rank, divided into columns of its own unknowns and those of its ghosts.
#include "femtile.cuh"

// Entries of each row in the first n_own columns, and those in others that are not zero; the first row that has any of these.
// One thread per row.
extern "C" __global__ void ranks_count(
    u32* own, u32* others, u32* first, const u32* offsets, const u32* columns, const T* values, u64 n, u64 n_own) {
    const u64 row = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (row >= n) return;
    u32 n_of_own = 0, n_of_others = 0;
    for (u32 e = offsets[row]; e < offsets[row + 1]; ++e) {
        if (columns[e] < n_own) {
            ++n_of_own;
        } else {
            n_of_others += values[e] != 0;
        }
    }
    own[row] = n_of_own;
    others[row] = n_of_others;
    if (n_of_others > 0) atomicMin(first, (u32)row);
}

// These entries, from where the rows of each part begin. One thread per row.
extern "C" __global__ void ranks_divide(
    u32* own_columns, T* own_values, u32* other_columns, T* other_values, const u32* own_starts, const u32* other_starts,
    const u32* offsets, const u32* columns, const T* values, u64 n, u64 n_own) {
    const u64 row = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (row >= n) return;
    u32 own = own_starts[row], other = other_starts[row];
    for (u32 e = offsets[row]; e < offsets[row + 1]; ++e) {
        if (columns[e] < n_own) {
            own_columns[own] = columns[e];
            own_values[own++] = values[e];
        } else if (values[e] != 0) {
            other_columns[other] = columns[e] - (u32)n_own;
            other_values[other++] = values[e];
        }
    }
}

// Copies of numbers from one of them on. One thread per number.
extern "C" __global__ void ranks_numbers(u32* to, const u32* from, u64 first, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[first + i];
}
