// Prolongation and restriction between a grid of cells and its refinement along some axes: coarse shape functions at fine
// nodes, and the transpose.
//
// A team of threads processes a coarse cell and the fine nodes that it owns, a thread per line.
#include "femtile.cuh"
#include "cells.cuh"
#include "embedding.cuh"

// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
const u32 LAYER = FINE * ROW, TENSOR = COARSE * LAYER;

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
