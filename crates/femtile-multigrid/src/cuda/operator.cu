// r = b - A x, or -A x without b, for the Laplacian on boxes,
//   A = sum over cells of  K x M x M + M x K x M + M x M x K,
// with a coefficient and lengths of its own for each cell in a variant (FEMTILE_BY_CELL).
// Rows of cells along x, one colour at a time, share no node. The first row with a node starts from b, later ones
// subtract; Dirichlet rows are zero.
//
// A team of threads advances along a row cell by cell, a thread per line, and passes on the shared face. It starts one
// cell early, of which it keeps only the face.
#include "femtile.cuh"
#include "cells.cuh"
#include "symmetric.cuh"

// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
// Odd row strides in shared memory avoid bank conflicts.
const u32 ROW = N | 1, LAYER = N * ROW, TENSOR = N * LAYER;

// Factors of mass and stiffness of the cells of a row, from the widths of cells along x, then y, then z; or by cell, from
// factors of the terms with K along x, y and z, and a number that is not used.
#if FEMTILE_BY_CELL
struct Factors {
    const T* numbers;

    __device__ inline Factors(const T* numbers, const Cells& cells, const Cell& first)
        : numbers(numbers + 4 * first.number(cells) - 4 * first.at[0]) {}
    __device__ inline T mass(u32, const Cell&) const { return 1; }
    __device__ inline T stiffness(u32 axis, const Cell& cell) const { return __ldg(numbers + 4 * cell.at[0] + axis); }
};
#else
struct Factors {
    const T* widths;
    T width_y, width_z;

    __device__ inline Factors(const T* widths, const Cells& cells, const Cell& first) : widths(widths) {
        width_y = __ldg(widths + cells.cells[0] + first.at[1]);
        width_z = __ldg(widths + cells.cells[0] + cells.cells[1] + first.at[2]);
    }
    __device__ inline T mass(u32 axis, const Cell& cell) const {
        return axis == 0 ? __ldg(widths + cell.at[0]) : axis == 1 ? width_y : width_z;
    }
    __device__ inline T stiffness(u32 axis, const Cell& cell) const { return (T)1 / mass(axis, cell); }
};
#endif

extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS)
    box_residual(T* r, const T* b, const T* x, const T* numbers, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool has_row = team < TEAMS && number < cells.count();
    Cell cell(cells, has_row ? number : 0);
    T *const values = shared + (has_row ? team : 0) * (2 * TENSOR + 2 * LAYER), *const others = values + TENSOR;
    T* const handed = others + TENSOR;
    const u32 p = own % N, q = own / N, begin = cell.at[0], n_cells = (u32)cells.cells[0];
    const u32 end = begin + (u32)cells.steps[0] < n_cells ? begin + (u32)cells.steps[0] : n_cells;
    const Factors factors(numbers, cells, cell);
    const bool is_zero = cell.is_given(cells, 1, q), is_first = cell.is_first(cells, 1, q);

    // The number of cells of the longest row of a block.
    for (u32 turn = 0; turn <= (u32)cells.steps[0]; ++turn) {
        cell.at[0] = begin + turn - 1;
        const bool is_active = has_row && begin + turn > 0 && begin + turn <= end;
        const u64 column = Nodes(cells, cell, K, K, K).first + p + q * Nodes(cells, cell, K, K, K).row;
        const u64 layer = Nodes(cells, cell, K, K, K).layer;
        if (is_active) {
            T line[N];
            load_line(line, x + column, layer);
            store_line(values + p + q * ROW, line, LAYER);
        }
        __syncthreads();
        if (is_active) {
            T *const of_mass = values + p * ROW + q * LAYER, *const of_stiffness = others + p * ROW + q * LAYER;
            T mass[N] = {}, stiffness[N] = {};
            const Halves line(of_mass, 1);
            add_product<Mass>(mass, line, factors.mass(0, cell));
            add_product<Stiffness>(stiffness, line, factors.stiffness(0, cell));
            store_line(of_mass, mass, 1);
            store_line(of_stiffness, stiffness, 1);
        }
        __syncthreads();
        if (is_active) {
            T *const of_mass = values + p + q * LAYER, *const of_stiffness = others + p + q * LAYER;
            T mass[N] = {}, stiffness[N] = {};
            const Halves line(of_mass, ROW);
            add_product<Mass>(mass, line, factors.mass(1, cell));
            add_product<Stiffness>(stiffness, line, factors.stiffness(1, cell));
            add_product<Mass>(stiffness, Halves(of_stiffness, ROW), factors.mass(1, cell));
            store_line(of_mass, mass, ROW);
            store_line(of_stiffness, stiffness, ROW);
        }
        __syncthreads();
        if (is_active) {
            T product[N] = {};
            add_product<Stiffness>(product, Halves(values + p + q * ROW, LAYER), factors.stiffness(2, cell));
            add_product<Mass>(product, Halves(others + p + q * ROW, LAYER), factors.mass(2, cell));
            // The face for the next cell; two buffers alternate.
            if (p == K) store_line(handed + turn % 2 * LAYER + q, product, ROW);
            const bool is_end = cell.at[0] + 1 == n_cells;
            if (turn > 0 && (p < K || is_end)) {
                if (p == 0 && cell.at[0] > 0) {
#pragma unroll
                    for (u32 i = 0; i < N; ++i) product[i] += handed[(turn + 1) % 2 * LAYER + q + i * ROW];
                }
#pragma unroll
                for (u32 i = 0; i < N; ++i) {
                    const u64 node = column + i * layer;
                    if (is_zero || cell.is_given(cells, 0, p) || cell.is_given(cells, 2, i)) {
                        r[node] = 0;
                    } else {
                        const T before = is_first && cell.is_first(cells, 2, i) ? (b ? __ldg(b + node) : 0) : r[node];
                        r[node] = before - product[i];
                    }
                }
            }
        }
    }
}
