// Block tridiagonal systems by parallel cyclic reduction, for comparison: [laszlo2016], Alg. 2 with blocks for numbers.
//
// Rows have a unit diagonal block: u_i = d_i - A_i u_{i-s} - C_i u_{i+s}, s = 1, 2, 4, … A step takes the row's
// neighbours in:
//
//   W = I - A_i C_{i-s} - C_i A_{i+s},  A'_i = -W^{-1} A_i A_{i-s},  C'_i = -W^{-1} C_i C_{i+s},
//   d'_i = W^{-1} (d_i - A_i d_{i-s} - C_i d_{i+s})
//
// M threads share a block row; intermediate blocks are numbered i P + p. `failed` holds for each system the step that
// first met an unsound row, and the least such row: later ones may only have been told.
#include "block.cuh"

const u32 THREADS = 128;
const u32 ROW_BITS = 27;

// Steps and rows, in room that was made for numbers of type T.
__device__ inline u32* rows_in(T* room) { return reinterpret_cast<u32*>(room); }

// The block row of a thread; those beyond the last repeat it.
struct Own {
    Place place;
    u64 number;
    bool is_active;

    __device__ inline explicit Own(u64 n_blocks) {
        const u64 warp = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
        const u64 mine = warp * GROUPS + place.group;
        is_active = !place.is_spare && mine < n_blocks;
        number = mine < n_blocks ? mine : n_blocks - 1;
    }
};

__device__ inline void load_column(T (&column)[M], const T* band, u64 block, u32 j, bool is_there) {
#pragma unroll
    for (u32 i = 0; i < M; ++i) column[i] = is_there ? band[(block * M + i) * M + j] : T(0);
}

__device__ inline void store_column(T* band, const T (&column)[M], u64 block, u32 j) {
#pragma unroll
    for (u32 i = 0; i < M; ++i) band[(block * M + i) * M + j] = column[i];
}

// Writes a row that was divided by its pivot block; W has the pivot block's column before.
__device__ inline void divide(const Own& own, T* a, T* c, T* d, T* failed, u64 n_systems, T (&w)[M], T diagonal,
                              T (&right)[2][M], T (&r)[M], u64 vector_block, u32 step) {
    const u32 j = own.place.column;
    ByShuffle exchange(own.place);
    const bool is_sound = eliminate<ByShuffle, 2>(exchange, j, w, diagonal, right, r);
    const T value = entry_of(r, j);
    if (!own.is_active) return;
    if (a != 0) {
        store_column(a, right[0], own.number, j);
        store_column(c, right[1], own.number, j);
    }
    d[vector_block * M + j] = value;
    const u32 row = u32(own.number / n_systems);
    if (!is_sound) atomicMin(&rows_in(failed)[own.number % n_systems], step << ROW_BITS | row);
}

// Nothing has failed yet.
extern "C" __global__ void block_pcr_clear(T* failed, u64 n_systems) {
    const u64 system = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (system < n_systems) rows_in(failed)[system] = NO_ROW;
}

// Divides every row by its diagonal block. Goes to `d_to` in the order of the batch where that is the solution.
extern "C" __global__ void __launch_bounds__(THREADS)
    block_pcr_begin(T* a_to, T* c_to, T* d_to, T* failed, const T* a, const T* b, const T* c, const T* d,
                    u64 n_systems, u64 row_stride, u64 system_stride, u32 n_rows) {
    const Own own(n_systems * n_rows);
    const u32 j = own.place.column;
    const u64 row = own.number / n_systems, system = own.number % n_systems;
    const u64 block = row * row_stride + system * system_stride;
    T w[M], right[2][M], r[M];
    load_column(w, b, block, j, true);
    load_column(right[0], a, block, j, row > 0);
    load_column(right[1], c, block, j, row + 1 < n_rows);
    ByShuffle exchange(own.place);
    exchange.gather(r, d[block * M + j]);
    divide(own, a_to, c_to, d_to, failed, n_systems, w, entry_of(w, j), right, r, own.number, 0);
}

// Takes in the rows `reach` away. The last step writes d alone, in the order of the batch: the solution.
extern "C" __global__ void __launch_bounds__(THREADS)
    block_pcr_step(T* a_to, T* c_to, T* d_to, T* failed, const T* a, const T* c, const T* d, u64 n_systems,
                   u64 row_stride, u64 system_stride, u32 n_rows, u32 reach) {
    const Own own(n_systems * n_rows);
    const u32 j = own.place.column;
    const u64 row = own.number / n_systems, system = own.number % n_systems;
    ByShuffle exchange(own.place);
    T w[M], right[2][M], r[M];
#pragma unroll
    for (u32 i = 0; i < M; ++i) {
        w[i] = i == j ? T(1) : T(0);
        right[0][i] = right[1][i] = T(0);
    }
    exchange.gather(r, d[own.number * M + j]);
#pragma unroll
    for (u32 side = 0; side < 2; ++side) {
        const bool is_there = side == 0 ? row >= reach : row + reach < n_rows;
        const u64 away = u64(reach) * n_systems;
        const u64 other = !is_there ? own.number : side == 0 ? own.number - away : own.number + away;
        T coupling[M], near[M], far[M], d_other[M];
        load_column(coupling, side == 0 ? a : c, own.number, j, is_there);
        load_column(near, side == 0 ? c : a, other, j, is_there);
        load_column(far, side == 0 ? a : c, other, j, is_there);
        exchange.gather(d_other, is_there ? d[other * M + j] : T(0));
#pragma unroll
        for (u32 k = 0; k < M; ++k) {
            T factors[M];
            exchange.column(factors, coupling, k);
#pragma unroll
            for (u32 i = 0; i < M; ++i) {
                w[i] -= factors[i] * near[k];
                right[side][i] -= factors[i] * far[k];
                r[i] -= factors[i] * d_other[k];
            }
        }
    }
    const bool is_last = a_to == 0;
    const u64 vector_block = is_last ? row * row_stride + system * system_stride : own.number;
    divide(own, a_to, c_to, d_to, failed, n_systems, w, T(1), right, r, vector_block, u32(32 - __clz(int(reach))));
}

// Counts the systems that failed, and fills them with NaN.
extern "C" __global__ void block_pcr_end(T* u, u64* status, T* failed, u64 n_systems, u64 row_stride,
                                         u64 system_stride, u32 n_rows) {
    const u64 system = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (system >= n_systems || rows_in(failed)[system] == NO_ROW) return;
    atomicAdd(&status[0], u64(1));
    const u32 row = rows_in(failed)[system] & ((1u << ROW_BITS) - 1);
    atomicMin(&status[1], system * n_rows + row);
    for (u32 n = 0; n < n_rows; ++n) {
        for (u32 i = 0; i < M; ++i) u[(n * row_stride + system * system_stride) * M + i] = T(0) / T(0);
    }
}
