// Rows in slices from a matrix in compressed sparse rows: the order of the rows, where slices begin, their
// columns.
//
// Each lane has a row. Where a warp takes a slice, thread t has its lanes t, t + 32, ….
#include "femtile.cuh"

typedef T Offset;
// Stands for the first column of a slice that has no entry.
const u32 NO_COLUMN = 0xffffffffu;

struct Matrix {
    const Offset* offsets;
    const u32* columns;
    const u32* rows;  // the row at each place; null: the place itself
    u64 n_rows;
    u64 n_slices;
    u64 lanes;        // of a slice, a multiple of a warp
};

struct Row {
    const u32* columns;
    u32 length;
};

__device__ inline Row row_of_lane(const Matrix& a, u64 s, u32 lane) {
    const u64 place = s * a.lanes + lane;
    if (place >= a.n_rows) return Row{a.columns, 0};
    const u64 row = a.rows != 0 ? a.rows[place] : place, from = a.offsets[row];
    return Row{a.columns + from, (u32)(a.offsets[row + 1] - from)};
}

// Where a lane is stored in a column of its slice: the lanes of a thread are neighbours.
__device__ inline u32 stored_lane(const Matrix& a, u32 lane) {
    return lane % WARP * ((u32)a.lanes / WARP) + lane / WARP;
}

__device__ inline u64 slice_of_warp() {
    return (blockIdx.x * (u64)blockDim.x + threadIdx.x) / WARP;
}

__device__ inline u32 warp_max(u32 value) {
    for (u32 half = WARP / 2; half > 0; half /= 2) {
        value = max(value, __shfl_xor_sync(FULL_WARP, value, half));
    }
    return value;
}

__device__ inline u32 warp_min(u32 value) {
    return ~warp_max(~value);
}

// Smallest column of a slice, 0 where it has no entry; columns ascend in a row.
__device__ inline u32 smallest_column(const Matrix& a, u64 s) {
    u32 smallest = NO_COLUMN;
    for (u32 lane = threadIdx.x % WARP; lane < a.lanes; lane += WARP) {
        const Row row = row_of_lane(a, s, lane);
        if (row.length > 0) smallest = min(smallest, row.columns[0]);
    }
    smallest = warp_min(smallest);
    return smallest == NO_COLUMN ? 0 : smallest;
}

// Entries of each row.
extern "C" __global__ void ell_warp_lengths(u32* lengths, const Offset* offsets, u64 n_rows) {
    const u64 row = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (row < n_rows) lengths[row] = (u32)(offsets[row + 1] - offsets[row]);
}

// Rows by descending length within windows, equal ones in their order: a bitonic network, whose keys end with
// the number of the row. A block takes `tile` rows, whole windows; both are powers of two.
extern "C" __global__ void ell_warp_order(u32* rows, const u32* lengths, u64 n_rows, u32 window, u32 tile) {
    FEMTILE_DYNAMIC_SHARED(u64, keys);
    const u64 first = blockIdx.x * (u64)tile;
    for (u32 i = threadIdx.x; i < tile; i += blockDim.x) {
        keys[i] = first + i < n_rows ? (u64)~lengths[first + i] << 32 | i : ~0ull;
    }
    for (u32 size = 2; size <= window; size *= 2) {
        for (u32 step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (u32 pair = threadIdx.x; pair < tile / 2; pair += blockDim.x) {
                const u32 i = 2 * pair - (pair & (step - 1));
                const bool descends = size < window && (i & size) != 0;
                const u64 low = keys[i], high = keys[i + step];
                if ((low > high) != descends) {
                    keys[i] = high;
                    keys[i + step] = low;
                }
            }
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < tile; i += blockDim.x) {
        if (first + i < n_rows) rows[first + i] = (u32)(first + (u32)keys[i]);
    }
}

// Entries of the longest row of each slice.
extern "C" __global__ void ell_warp_widths(u32* widths, Matrix a) {
    const u64 s = slice_of_warp();
    if (s >= a.n_slices) return;
    u32 width = 0;
    for (u32 lane = threadIdx.x % WARP; lane < a.lanes; lane += WARP) {
        width = max(width, row_of_lane(a, s, lane).length);
    }
    width = warp_max(width);
    if (threadIdx.x % WARP == 0) widths[s] = width;
}

// Smallest column of each slice and its columns of words: as many as it is wide where all distances fit into
// 16 bits, else twice as many.
extern "C" __global__ void ell_warp_sizes(u32* sizes, u32* bases, const u32* widths, Matrix a) {
    const u64 s = slice_of_warp();
    if (s >= a.n_slices) return;
    const u32 base = smallest_column(a, s);
    bool fits = true;
    for (u32 lane = threadIdx.x % WARP; lane < a.lanes; lane += WARP) {
        const Row row = row_of_lane(a, s, lane);
        u32 last = base;
#pragma unroll 4
        for (u32 j = 0; j < row.length; ++j) {
            const u32 column = row.columns[j];
            fits = fits && column - last <= 0xffff;
            last = column;
        }
    }
    fits = __all_sync(FULL_WARP, fits);
    if (threadIdx.x % WARP == 0) {
        // All bits where twice as many cannot be counted: the sum of all is refused then.
        sizes[s] = fits ? widths[s] : widths[s] > 0x7fffffffu ? 0xffffffffu : 2 * widths[s];
        bases[s] = base;
    }
}

// Columns as numbers. Padding repeats the column before it, that of lanes without entries is the slice's
// smallest.
extern "C" __global__ void ell_warp_columns(u32* columns, const u32* starts, Matrix a) {
    const u64 s = slice_of_warp();
    if (s >= a.n_slices) return;
    const u32 begin = starts[s], width = starts[s + 1] - begin, smallest = smallest_column(a, s);
    for (u32 lane = threadIdx.x % WARP; lane < a.lanes; lane += WARP) {
        const Row row = row_of_lane(a, s, lane);
        u64 at = begin * a.lanes + stored_lane(a, lane);
        u32 last = smallest;
#pragma unroll 4
        for (u32 j = 0; j < width; ++j) {
            if (j < row.length) last = row.columns[j];
            columns[at] = last;
            at += a.lanes;
        }
    }
}

// The same as distances from column to column, the first from the base of the slice; where they do not fit,
// as two halves, the lower first.
extern "C" __global__ void ell_warp_distances(
    unsigned short* words, const u32* starts, const u32* bases, const u32* widths, Matrix a) {
    const u64 s = slice_of_warp();
    if (s >= a.n_slices) return;
    const u32 begin = starts[s], width = widths[s], base = bases[s];
    const u32 n_words = starts[s + 1] - begin == width ? 1 : 2;
    for (u32 lane = threadIdx.x % WARP; lane < a.lanes; lane += WARP) {
        const Row row = row_of_lane(a, s, lane);
        u64 at = begin * a.lanes + (u64)n_words * stored_lane(a, lane);
        u32 last = base;
#pragma unroll 4
        for (u32 j = 0; j < width; ++j) {
            const u32 column = j < row.length ? row.columns[j] : last;
            words[at] = (unsigned short)(n_words == 1 ? column - last : column);
            if (n_words == 2) words[at + 1] = (unsigned short)(column >> 16);
            last = column;
            at += n_words * a.lanes;
        }
    }
}
