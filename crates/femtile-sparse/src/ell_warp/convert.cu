// New values for rows in slices, and vectors from one numbering to the other.
#include "femtile.cuh"

typedef FEMTILE_OFFSET Offset;
const u32 PADDING = 0xffffffffu;

// values[at] = the entry of CSR that lies there, 0 for padding. A warp takes a slice; `entries`, where there are any,
// name the entry of the row.
extern "C" __global__ void ell_warp_refill(
    T* values, const u32* starts, const u32* firsts, const u32* folds, const u32* rows, const u32* entries,
    const Offset* offsets, const T* csr, u64 n_slices, u64 n_rows, u32 lanes) {
    const u64 s = (blockIdx.x * (u64)blockDim.x + threadIdx.x) / WARP;
    if (s >= n_slices) return;
    const u32 begin = starts[s], width = starts[s + 1] - begin;
    const u64 first = firsts != 0 ? firsts[s] : s * lanes;
    const u64 end = firsts != 0 ? firsts[s + 1] : (first + lanes < n_rows ? first + lanes : n_rows);
    const u32 fold = folds != 0 ? folds[s] : 0;
    const u32 pack = lanes < WARP ? 1 : lanes / WARP;
    for (u32 lane = threadIdx.x % WARP; lane < lanes; lane += WARP) {
        const u32 stored = lanes < WARP ? lane : lane % WARP * pack + lane / WARP;
        const u64 place = first + (lane >> fold);
        u64 from = 0, length = 0;
        if (place < end) {
            const u64 row = rows != 0 ? rows[place] : place;
            from = offsets[row];
            length = offsets[row + 1] - from;
        }
        const u32 own = lane & ((1u << fold) - 1);
#pragma unroll 4
        for (u32 j = 0; j < width; ++j) {
            const u64 at = ((u64)begin + j) * lanes + stored;
            u64 k = ((u64)j << fold) + own;
            if (entries != 0) k = entries[at] == PADDING ? length : entries[at];
            values[at] = k < length ? csr[from + k] : (T)0;
        }
    }
}

// to[place] = from[rows[place]].
extern "C" __global__ void ell_warp_sort(T* to, const T* from, const u32* rows, u64 n) {
    const u64 place = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (place < n) to[place] = from[rows[place]];
}

// to[rows[place]] = from[place].
extern "C" __global__ void ell_warp_unsort(T* to, const T* from, const u32* rows, u64 n) {
    const u64 place = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (place < n) to[rows[place]] = from[place];
}
