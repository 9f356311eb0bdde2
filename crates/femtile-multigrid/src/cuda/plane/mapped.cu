// r = b - A x, or -A x without b, for -div(c grad u) on images of squares under bilinear maps with a coefficient each,
//   A = sum over cells of  B^T D^T G D B,
// where B evaluates at K + 1 Gauss points per axis, D differentiates the polynomials through their values, and
// G = w c det J J^-1 J^-T.
//
// A block has a tile of cells, a thread per line of a cell.
#include "femtile.cuh"
#include "cells.cuh"
#include "gauss.cuh"
#include "reciprocal.cuh"
#include "tile.cuh"

// Numbers per cell: two for each product of powers of the coordinates, then c.
const u32 NUMBERS = 9;

// The metric at the points of a column along y: columns of J are `along_x` + t `slope` and `along_y`.
struct Metric {
    T along_x[2], along_y[2], slope[2], scale;

    __device__ inline Metric(const T* numbers, u32 p) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            slope[i] = __ldg(numbers + 6 + i);
            along_x[i] = __ldg(numbers + 2 + i);
            along_y[i] = __ldg(numbers + 4 + i) + POINTS[p] * slope[i];
        }
        scale = WEIGHTS[p] * __ldg(numbers + 8);
    }

    // Turns slopes at a point into fluxes.
    __device__ inline void act(T& x, T& y, u32 point) const {
        const T t = POINTS[point], j_x = along_x[0] + t * slope[0], j_y = along_x[1] + t * slope[1];
        const T share = WEIGHTS[point] * scale * reciprocal(j_x * along_y[1] - j_y * along_y[0]);
        const T g_xy = -(j_x * along_y[0] + j_y * along_y[1]);
        const T flux = (along_y[0] * along_y[0] + along_y[1] * along_y[1]) * x + g_xy * y;
        y = share * (g_xy * x + (j_x * j_x + j_y * j_y) * y);
        x = share * flux;
    }
};

// Products at the points of a column of a cell: from values and slopes along x at points of rows to those that rows of
// the result need.
__device__ inline void act(T* values, T* slopes, const Metric& metric) {
    T at_points[N] = {}, along_y[N] = {}, along_x[N] = {}, line[N], to_values[N] = {}, to_slopes[N] = {};
    evaluate(at_points, along_y, values, ROW);
    load_line(line, slopes, ROW);
    add_product<Values>(along_x, line);
#pragma unroll
    for (u32 i = 0; i < N; ++i) {
        metric.act(along_x[i], along_y[i], i);
        at_points[i] = 0;
    }
    add_product<Transposed<Slopes>>(at_points, along_y);
    add_product<Transposed<Values>>(to_values, at_points);
    add_product<Transposed<Values>>(to_slopes, along_x);
    store_line(values, to_values, ROW);
    store_line(slopes, to_slopes, ROW);
}

extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS)
    plane_mapped_residual(T* r, const T* b, const T* x, const T* numbers, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const Tile tile(cells, shared);
    tile.load(x);
    __syncthreads();
    for (u32 i = threadIdx.x; i < N_LINES; i += FEMTILE_THREADS) {
        const TileLine line(i);
        T values[N] = {}, slopes[N] = {};
        if (line.is_there(tile)) evaluate(values, slopes, line.row(tile), 1);
        store_line(line.first(tile) + line.own * ROW, values, 1);
        store_line(line.second(tile) + line.own * ROW, slopes, 1);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < N_LINES; i += FEMTILE_THREADS) {
        const TileLine line(i);
        if (!line.is_there(tile)) continue;
        const Metric metric(numbers + NUMBERS * line.cell(tile), line.own);
        act(line.first(tile) + line.own, line.second(tile) + line.own, metric);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < N_LINES; i += FEMTILE_THREADS) {
        const TileLine line(i);
        integrate(line.first(tile) + line.own * ROW, line.second(tile) + line.own * ROW, 1);
    }
    __syncthreads();
    tile.store(r, b, cells);
}
