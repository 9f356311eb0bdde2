// Prolongation and restriction between a grid of cells and its refinement along some axes: coarse shape functions at fine
// nodes, and the transpose.
//
// A team of threads processes a coarse cell and the fine nodes that it owns: all but those at its upper ends, which
// belong to the next cell. Where upper sides are free, there is space for these nodes (FAR), and the last cells own them.
// A thread per line.
#include "femtile.cuh"
#include "cells.cuh"
#include "tables.cuh"

// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
// Nodes along a line of a coarse cell, and of its one or two parts along each axis. Odd row strides in shared memory
// avoid bank conflicts.
const u32 COARSE = K + 1, FAR = FEMTILE_FAR;
const u32 PARTS_X = FEMTILE_PARTS_X, PARTS_Y = FEMTILE_PARTS_Y, PARTS_Z = FEMTILE_PARTS_Z;
const u32 FINE_X = PARTS_X * K + FAR, FINE_Y = PARTS_Y * K + FAR, FINE_Z = PARTS_Z * K + FAR;
const u32 FINE = 2 * K + FAR, ROW = FINE | 1, LAYER = FINE * ROW, TENSOR = COARSE * LAYER;

template <u32 PARTS>
__device__ inline void to_fine(T (&fine)[PARTS * K + FAR], const T (&coarse)[COARSE]) {
#pragma unroll
    for (u32 i = 0; i < PARTS * K + FAR; ++i) {
        if (PARTS == 1) {
            fine[i] = coarse[i];
            continue;
        }
        T sum = VALUES[i * COARSE] * coarse[0];
#pragma unroll
        for (u32 j = 1; j < COARSE; ++j) sum += VALUES[i * COARSE + j] * coarse[j];
        fine[i] = sum;
    }
}

template <u32 PARTS>
__device__ inline void to_coarse(T (&coarse)[COARSE], const T (&fine)[PARTS * K + FAR]) {
#pragma unroll
    for (u32 j = 0; j < COARSE; ++j) {
        if (PARTS == 1) {
            coarse[j] = j < K + FAR ? fine[j % (K + FAR)] : (T)0;
            continue;
        }
        T sum = VALUES[j] * fine[0];
#pragma unroll
        for (u32 i = 1; i < PARTS * K + FAR; ++i) sum += VALUES[i * COARSE + j] * fine[i];
        coarse[j] = sum;
    }
}

template <u32 PARTS>
__device__ inline void line_to_fine(T* line, u32 stride) {
    T coarse[COARSE], fine[PARTS * K + FAR];
    load_line(coarse, line, stride);
    to_fine<PARTS>(fine, coarse);
    store_line(line, fine, stride);
}

template <u32 PARTS>
__device__ inline void line_to_coarse(T* line, u32 stride) {
    T coarse[COARSE], fine[PARTS * K + FAR];
    load_line(fine, line, stride);
    to_coarse<PARTS>(coarse, fine);
    store_line(line, coarse, stride);
}

// Whether a coarse cell owns the fine nodes at this index along an axis.
template <u32 PARTS>
__device__ inline bool has_node(const Cells& cells, const Cell& cell, u32 axis, u32 node) {
    return FAR == 0 || node < PARTS * K || cell.is_last_and_free(cells, axis);
}

// A line of a team, by indices of coarse or fine nodes along the two other axes.
struct Line {
    u32 p, q;
    bool is_there;

    __device__ inline Line(bool is_active, u32 own, u32 n, u32 m) {
        p = own % n;
        q = own / n;
        is_there = is_active && q < m;
    }
};

// Whether a coarse cell owns the fine nodes of a line along z.
__device__ inline bool has_line(const Cells& cells, const Cell& cell, const Line& line) {
    return has_node<PARTS_X>(cells, cell, 0, line.p) && has_node<PARTS_Y>(cells, cell, 1, line.q);
}

// Prolongation: x = x + I x_coarse.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) box_prolong(T* x, const T* coarse_x, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool is_active = team < TEAMS && number < cells.count();
    const Cell cell(cells, is_active ? number : 0);
    const Nodes coarse_nodes(cells, cell, K, K, K), nodes(cells, cell, PARTS_X * K, PARTS_Y * K, PARTS_Z * K);
    T* const values = shared + (is_active ? team : 0) * TENSOR;
    T coarse[COARSE], fine[FINE_Z];

    const Line loaded(is_active, own, COARSE, COARSE);
    if (loaded.is_there) {
        load_line(coarse, coarse_x + coarse_nodes.first + loaded.p + loaded.q * coarse_nodes.row, coarse_nodes.layer);
        store_line(values + loaded.p + loaded.q * ROW, coarse, LAYER);
    }
    __syncthreads();
    if (loaded.is_there) line_to_fine<PARTS_X>(values + loaded.p * ROW + loaded.q * LAYER, 1);
    __syncthreads();
    const Line along_y(is_active, own, FINE_X, COARSE);
    if (along_y.is_there) line_to_fine<PARTS_Y>(values + along_y.p + along_y.q * LAYER, ROW);
    __syncthreads();
    const Line along_z(is_active, own, FINE_X, FINE_Y);
    if (along_z.is_there && has_line(cells, cell, along_z)) {
        load_line(coarse, values + along_z.p + along_z.q * ROW, LAYER);
        to_fine<PARTS_Z>(fine, coarse);
        T* const to = x + nodes.first + along_z.p + along_z.q * nodes.row;
#pragma unroll
        for (u32 i = 0; i < FINE_Z; ++i) {
            if (has_node<PARTS_Z>(cells, cell, 2, i)) to[i * nodes.layer] += fine[i];
        }
    }
}

// Restriction: r_coarse = I^T r, coarse cells of one colour; zero at Dirichlet nodes.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) box_restrict(T* coarse_r, const T* r, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool is_active = team < TEAMS && number < cells.count();
    const Cell cell(cells, is_active ? number : 0);
    const Nodes coarse_nodes(cells, cell, K, K, K), nodes(cells, cell, PARTS_X * K, PARTS_Y * K, PARTS_Z * K);
    T* const values = shared + (is_active ? team : 0) * TENSOR;
    T coarse[COARSE], fine[FINE_Z];

    const Line along_z(is_active, own, FINE_X, FINE_Y);
    if (along_z.is_there) {
        const T* const from = r + nodes.first + along_z.p + along_z.q * nodes.row;
#pragma unroll
        for (u32 i = 0; i < FINE_Z; ++i) {
            const bool has_value = has_line(cells, cell, along_z) && has_node<PARTS_Z>(cells, cell, 2, i);
            fine[i] = has_value ? __ldg(from + i * nodes.layer) : (T)0;
        }
        to_coarse<PARTS_Z>(coarse, fine);
        store_line(values + along_z.p + along_z.q * ROW, coarse, LAYER);
    }
    __syncthreads();
    const Line along_y(is_active, own, FINE_X, COARSE);
    if (along_y.is_there) line_to_coarse<PARTS_Y>(values + along_y.p + along_y.q * LAYER, ROW);
    __syncthreads();
    const Line stored(is_active, own, COARSE, COARSE);
    if (stored.is_there) line_to_coarse<PARTS_X>(values + stored.p * ROW + stored.q * LAYER, 1);
    __syncthreads();
    if (stored.is_there) {
        const u32 p = stored.p, q = stored.q;
        load_line(coarse, values + p + q * ROW, LAYER);
        T* const to = coarse_r + coarse_nodes.first + p + q * coarse_nodes.row;
        const bool is_first = cell.is_first(cells, 0, p) && cell.is_first(cells, 1, q);
        const bool is_zero = cell.is_given(cells, 0, p) || cell.is_given(cells, 1, q);
#pragma unroll
        for (u32 i = 0; i < COARSE; ++i) {
            T& sum = to[i * coarse_nodes.layer];
            if (is_zero || cell.is_given(cells, 2, i)) {
                sum = 0;
            } else {
                sum = is_first && cell.is_first(cells, 2, i) ? coarse[i] : sum + coarse[i];
            }
        }
    }
}
