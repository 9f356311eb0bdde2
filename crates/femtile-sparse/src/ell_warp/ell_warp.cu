// y = A x for rows in slices, new values on the same pattern, and vectors from one numbering to the other.
//
// A warp takes a slice; thread t takes its lanes t, t + 32, …, which are stored side by side. In slices that give
// several lanes to a row the lanes of a row are neighbours, and are added at the end.
#include "femtile.cuh"
#include "stream.cuh"
#include "hook.cuh"

typedef FEMTILE_V V;

const u32 LANES = FEMTILE_LANES;
const u32 PACK = LANES / WARP;
// Columns of a slice that are under way at once.
const u32 BATCH = FEMTILE_BATCH;
// Columns of a slice of one row from which on a block takes it.
const u32 LONG = FEMTILE_LONG;

// Where the slices of a matrix lie; null where there is nothing to say.
struct Layout {
    const u32* starts;
    const u32* firsts;  // null: slice s begins at place s LANES
    const u32* folds;   // logarithm of the lanes of a row; null: 0
    const u32* rows;    // the row at each place; null: the place itself
    const u32* longs;   // slices of rows that a whole block takes
    u64 n_slices;
    u64 n_rows;
    u64 n_longs;
    u64 n_dedicated;    // blocks that take one long row each and nothing else
};

template <typename N>
struct alignas(PACK * sizeof(N)) Lanes {
    N lane[PACK];
};

template <typename N>
__device__ inline Lanes<N> load_lanes(const N* array, u64 column, u32 thread) {
    return load_streamed(reinterpret_cast<const Lanes<N>*>(array) + (column * WARP + thread));
}

struct Slice {
    u32 begin, width;  // columns
    u32 first, n;      // places
    u32 fold;
};

__device__ inline Slice slice_of(const Layout& layout, u64 s) {
    Slice slice;
    slice.begin = layout.starts[s];
    slice.width = layout.starts[s + 1] - slice.begin;
    if (FEMTILE_FOLDED) {
        slice.first = layout.firsts[s];
        slice.n = layout.firsts[s + 1] - slice.first;
        slice.fold = layout.folds[s];
    } else {
        const u64 first = s * LANES, left = layout.n_rows - first;
        slice.first = (u32)first;
        slice.n = left < LANES ? (u32)left : LANES;
        slice.fold = 0;
    }
    return slice;
}

#if FEMTILE_DELTA
// Columns as distances of 16 bits, or in slices with larger ones as two halves.
struct Columns {
    const unsigned short* words;
    const u32* starts;
    const u32* bases;
};
#else
struct Columns {
    const u32* numbers;
    u64 unused;
};
#endif

// Sums of a thread's lanes over one batch of columns, those from `width` on left out where the batch is the last.
template <bool IS_LAST>
__device__ inline void add_batch(
    T (&sums)[PACK], const V* values, const u32* numbers, u32 begin, u32 j, u32 width, u32 thread, const T* x) {
    Lanes<V> value[BATCH];
    Lanes<u32> column[BATCH];
#pragma unroll
    for (u32 k = 0; k < BATCH; ++k) {
        if (!IS_LAST || j + k < width) {
            column[k] = load_lanes(numbers, (u64)begin + j + k, thread);
            value[k] = load_lanes(values, (u64)begin + j + k, thread);
        }
    }
#pragma unroll
    for (u32 k = 0; k < BATCH; ++k) {
        if (!IS_LAST || j + k < width) {
#pragma unroll
            for (u32 i = 0; i < PACK; ++i) sums[i] += (T)value[k].lane[i] * __ldg(x + column[k].lane[i]);
        }
    }
}

// The same with columns as distances; `last` is the column of each lane so far.
template <bool IS_LAST>
__device__ inline void add_distances(
    T (&sums)[PACK], u32 (&last)[PACK], const V* values, const unsigned short* words, u32 word, u32 begin, u32 j,
    u32 width, u32 thread, const T* x) {
    Lanes<V> value[BATCH];
    Lanes<unsigned short> delta[BATCH];
#pragma unroll
    for (u32 k = 0; k < BATCH; ++k) {
        if (!IS_LAST || j + k < width) {
            delta[k] = load_lanes(words, (u64)word + j + k, thread);
            value[k] = load_lanes(values, (u64)begin + j + k, thread);
        }
    }
#pragma unroll
    for (u32 k = 0; k < BATCH; ++k) {
        if (!IS_LAST || j + k < width) {
#pragma unroll
            for (u32 i = 0; i < PACK; ++i) {
                last[i] += delta[k].lane[i];
                sums[i] += (T)value[k].lane[i] * __ldg(x + last[i]);
            }
        }
    }
}

// Sums of a thread's lanes over columns whose numbers are given.
__device__ inline void add_numbers(
    T (&sums)[PACK], const V* values, const u32* numbers, u32 begin, u32 width, u32 thread, const T* x) {
    const u32 whole = width / BATCH * BATCH;
    for (u32 j = 0; j < whole; j += BATCH) add_batch<false>(sums, values, numbers, begin, j, width, thread, x);
    add_batch<true>(sums, values, numbers, begin, whole, width, thread, x);
}

// The numbers of the columns of a slice that has no distances, counted from the first column of all.
__device__ inline const u32* numbers_of(const Columns& columns, const Slice& slice, u64 s) {
#if FEMTILE_DELTA
    // Two words a number: LANES numbers begin every 2 LANES words.
    const u32* const numbers = reinterpret_cast<const u32*>(columns.words + (u64)columns.starts[s] * LANES);
    return numbers - (u64)slice.begin * LANES;
#else
    return columns.numbers;
#endif
}

// Sums of a thread's lanes over a slice.
__device__ inline void add_slice(
    T (&sums)[PACK], const Slice& slice, u64 s, const Columns& columns, const V* values, u32 thread, const T* x) {
#if FEMTILE_DELTA
    const u32 word = columns.starts[s];
    if (columns.starts[s + 1] - word == slice.width) {
        const u32 whole = slice.width / BATCH * BATCH;
        u32 last[PACK];
#pragma unroll
        for (u32 i = 0; i < PACK; ++i) last[i] = columns.bases[s];
        for (u32 j = 0; j < whole; j += BATCH) {
            add_distances<false>(sums, last, values, columns.words, word, slice.begin, j, slice.width, thread, x);
        }
        add_distances<true>(sums, last, values, columns.words, word, slice.begin, whole, slice.width, thread, x);
        return;
    }
#endif
    add_numbers(sums, values, numbers_of(columns, slice, s), slice.begin, slice.width, thread, x);
}

// Whether a slice is left to the blocks that take long rows.
__device__ inline bool is_long(const Slice& slice) {
    return FEMTILE_FOLDED && 1u << slice.fold == LANES && slice.width > LONG;
}

// The row of a long slice: each warp of the block takes some of its columns.
__device__ inline void apply_long(
    T* y, const V* values, const T* x, const Layout& layout, const Columns& columns, Hook& hook, u64 s) {
    const Slice slice = slice_of(layout, s);
    const u32 n_warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
    const u32 share = (slice.width + n_warps - 1) / n_warps;
    const u32 first = warp * share < slice.width ? warp * share : slice.width;
    const u32 width = slice.width - first < share ? slice.width - first : share;
    T sums[PACK];
#pragma unroll
    for (u32 i = 0; i < PACK; ++i) sums[i] = 0;
    add_numbers(sums, values, numbers_of(columns, slice, s), slice.begin + first, width, threadIdx.x % WARP, x);
    double sum = 0.0;
#pragma unroll
    for (u32 i = 0; i < PACK; ++i) sum += (double)sums[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        const u64 row = FEMTILE_SCATTERS ? layout.rows[slice.first] : slice.first;
        y[row] = (T)sum;
        hook.post(row, x, (T)sum);
    }
}

// Adds the lanes of each row; the first of them then has the sum.
__device__ inline void fold_lanes(T (&sums)[PACK], u32 fold, u32 thread, T* shared) {
    if (PACK > 1 && 1u << fold > WARP) {
#pragma unroll
        for (u32 i = 1; i < PACK; ++i) sums[0] += sums[i];
        fold = 5;
    }
#pragma unroll
    for (u32 i = 0; i < PACK; ++i) {
#if FEMTILE_SHARED_SUMS
        shared[threadIdx.x] = sums[i];
        __syncwarp();
        for (u32 half = (1u << fold) / 2; half > 0; half /= 2) {
            if (thread % (1u << fold) < half) shared[threadIdx.x] += shared[threadIdx.x + half];
            __syncwarp();
        }
        sums[i] = shared[threadIdx.x];
#else
        for (u32 half = (1u << fold) / 2; half > 0; half /= 2) {
            sums[i] += __shfl_down_sync(FULL_WARP, sums[i], half);
        }
#endif
    }
}

extern "C" __global__ void ell_warp_apply(T* y, const V* values, const T* x, Layout layout, Columns columns, Hook hook) {
    if (hook.is_idle()) return;
#if FEMTILE_SHARED_SUMS
    FEMTILE_DYNAMIC_SHARED(T, shared);
#else
    T* const shared = 0;
#endif
    if (FEMTILE_FOLDED) {
        for (u64 i = blockIdx.x; i < layout.n_longs; i += gridDim.x) {
            apply_long(y, values, x, layout, columns, hook, layout.longs[i]);
        }
    }
    const u32 thread = threadIdx.x % WARP, warps = blockDim.x / WARP;
    const u64 n_warps = (gridDim.x - layout.n_dedicated) * warps;
    const bool is_dedicated = blockIdx.x < layout.n_dedicated;
    const u64 first = (blockIdx.x - layout.n_dedicated) * warps + threadIdx.x / WARP;
    for (u64 s = is_dedicated ? layout.n_slices : first; s < layout.n_slices; s += n_warps) {
        const Slice slice = slice_of(layout, s);
        if (is_long(slice)) continue;
        u64 rows[PACK];
        bool has_row[PACK];
#pragma unroll
        for (u32 i = 0; i < PACK; ++i) {
            const u32 lane = i * WARP + thread, place = lane >> slice.fold;
            has_row[i] = place < slice.n && lane == place << slice.fold;
            rows[i] = slice.first + place;
            if (FEMTILE_SCATTERS && has_row[i]) rows[i] = layout.rows[rows[i]];
        }
        T sums[PACK];
#pragma unroll
        for (u32 i = 0; i < PACK; ++i) sums[i] = 0;
        add_slice(sums, slice, s, columns, values, thread, x);
        if (FEMTILE_FOLDED) fold_lanes(sums, slice.fold, thread, shared);
#pragma unroll
        for (u32 i = 0; i < PACK; ++i) {
            if (has_row[i]) {
                y[rows[i]] = sums[i];
                hook.post(rows[i], x, sums[i]);
            }
        }
    }
    hook.finish();
}
