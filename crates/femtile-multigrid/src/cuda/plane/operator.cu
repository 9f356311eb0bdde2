// r = b - A x, or -A x without b, for the Laplacian on boxes of rectangles in the plane,
//   A = sum over cells of  g_x K x M + g_y M x K,
// with mass and stiffness of a line of width one. Factors g are ratios of widths, or those of each cell in a variant
// (FEMTILE_BY_CELL).
//
// A block has a tile of cells, a thread per line of a cell.
#include "femtile.cuh"
#include "cells.cuh"
#include "symmetric.cuh"
#include "tile.cuh"

// The factors of a cell: from widths of cells along x, then y; or by cell, along x and y; zero outside the grid.
struct Factors {
    T x, y;

    __device__ inline Factors(const T* numbers, const Tile& tile, const TileLine& line) : x(0), y(0) {
        if (!line.is_there(tile)) return;
#if FEMTILE_BY_CELL
        x = __ldg(numbers + 2 * line.cell(tile));
        y = __ldg(numbers + 2 * line.cell(tile) + 1);
#else
        const T width = __ldg(numbers + line.x(tile)), height = __ldg(numbers + tile.n_x + line.y(tile));
        x = height / width;
        y = width / height;
#endif
    }
};

extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS)
    plane_residual(T* r, const T* b, const T* x, const T* numbers, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const Tile tile(cells, shared);
    tile.load(x);
    __syncthreads();
    for (u32 i = threadIdx.x; i < N_LINES; i += FEMTILE_THREADS) {
        const TileLine line(i);
        const Halves values(line.row(tile), 1);
        T mass[N] = {}, stiffness[N] = {};
        add_product<Mass>(mass, values, (T)1);
        add_product<Stiffness>(stiffness, values, (T)1);
        store_line(line.first(tile) + line.own * ROW, mass, 1);
        store_line(line.second(tile) + line.own * ROW, stiffness, 1);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < N_LINES; i += FEMTILE_THREADS) {
        const TileLine line(i);
        const Factors factors(numbers, tile, line);
        T product[N] = {};
        add_product<Stiffness>(product, Halves(line.first(tile) + line.own, ROW), factors.y);
        add_product<Mass>(product, Halves(line.second(tile) + line.own, ROW), factors.x);
        store_line(line.first(tile) + line.own, product, ROW);
    }
    __syncthreads();
    tile.store(r, b, cells);
}
