// Prolongation and restriction in the plane between a grid of cells and its refinement along some axes.
//
// A team of threads processes a coarse cell and the fine nodes that it owns, a thread per line.
#include "femtile.cuh"
#include "cells.cuh"
#include "embedding.cuh"

// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS, SQUARE = COARSE * ROW;

// Prolongation: x = x + I x_coarse.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) plane_prolong(T* x, const T* coarse_x, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool is_active = team < TEAMS && number < cells.count();
    const Cell cell(cells, is_active ? number : 0);
    const Nodes coarse_nodes(cells, cell, K, K, 0), nodes(cells, cell, PARTS_X * K, PARTS_Y * K, 0);
    T* const values = shared + (is_active ? team : 0) * SQUARE;
    T coarse[COARSE];

    if (is_active && own < COARSE) {
        T fine[FINE_X];
        load_line(coarse, coarse_x + coarse_nodes.first + own * coarse_nodes.row, 1);
        to_fine<PARTS_X>(fine, coarse);
        store_line(values + own * ROW, fine, 1);
    }
    __syncthreads();
    if (is_active && own < FINE_X && has_node<PARTS_X>(cells, cell, 0, own)) {
        T fine[FINE_Y];
        load_line(coarse, values + own, ROW);
        to_fine<PARTS_Y>(fine, coarse);
        T* const to = x + nodes.first + own;
#pragma unroll
        for (u32 i = 0; i < FINE_Y; ++i) {
            if (has_node<PARTS_Y>(cells, cell, 1, i)) to[i * nodes.row] += fine[i];
        }
    }
}

// Restriction: r_coarse = I^T r, coarse cells of one colour; zero at Dirichlet nodes.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) plane_restrict(T* coarse_r, const T* r, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool is_active = team < TEAMS && number < cells.count();
    const Cell cell(cells, is_active ? number : 0);
    const Nodes coarse_nodes(cells, cell, K, K, 0), nodes(cells, cell, PARTS_X * K, PARTS_Y * K, 0);
    T* const values = shared + (is_active ? team : 0) * SQUARE;
    T coarse[COARSE];

    if (is_active && own < FINE_X) {
        const bool has_line = has_node<PARTS_X>(cells, cell, 0, own);
        const T* const from = r + nodes.first + own;
        T fine[FINE_Y];
#pragma unroll
        for (u32 i = 0; i < FINE_Y; ++i) {
            fine[i] = has_line && has_node<PARTS_Y>(cells, cell, 1, i) ? __ldg(from + i * nodes.row) : (T)0;
        }
        to_coarse<PARTS_Y>(coarse, fine);
        store_line(values + own, coarse, ROW);
    }
    __syncthreads();
    if (is_active && own < COARSE) {
        T fine[FINE_X];
        load_line(fine, values + own * ROW, 1);
        to_coarse<PARTS_X>(coarse, fine);
        T* const to = coarse_r + coarse_nodes.first + own * coarse_nodes.row;
        const bool is_first = cell.is_first(cells, 1, own), is_zero = cell.is_given(cells, 1, own);
#pragma unroll
        for (u32 i = 0; i < COARSE; ++i) {
            if (is_zero || cell.is_given(cells, 0, i)) {
                to[i] = 0;
            } else {
                to[i] = is_first && cell.is_first(cells, 0, i) ? coarse[i] : to[i] + coarse[i];
            }
        }
    }
}
