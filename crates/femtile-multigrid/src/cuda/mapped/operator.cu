// r = b - A x, or -A x without b, for -div(c grad u) on images of cubes under trilinear maps with a coefficient each,
//   A = sum over cells of  B^T D^T G D B,
// where B evaluates at K + 1 Gauss points per axis, D differentiates the polynomials through their values, and
// G = w c det J J^-1 J^-T. Rows of cells, their colours and the faces they pass on are those of box_residual.
//
// A team of threads has a cell, a thread per line. Along x and y the slopes are evaluated with the values, so lines
// change hands three times on the way to the points and three times back.
#include "femtile.cuh"
#include "cells.cuh"
#include "gauss.cuh"
#include "reciprocal.cuh"

// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
// Odd row strides in shared memory avoid bank conflicts.
const u32 ROW = N | 1, LAYER = N * ROW, TENSOR = N * LAYER;
// Numbers per cell: three for each product of powers of the coordinates, then c.
const u32 NUMBERS = 25;

__device__ inline void cross(T (&to)[3], const T (&a)[3], const T (&b)[3]) {
    to[0] = a[1] * b[2] - a[2] * b[1];
    to[1] = a[2] * b[0] - a[0] * b[2];
    to[2] = a[0] * b[1] - a[1] * b[0];
}

// The metric at the points of a column along z: columns of J are `along_x` + u `slope_x`, `along_y` + u `slope_y` and
// `along_z`.
struct Metric {
    T along_x[3], slope_x[3], along_y[3], slope_y[3], along_z[3], scale;

    __device__ inline Metric(const T* numbers, u32 p, u32 q) {
        const T s = POINTS[p], t = POINTS[q];
#pragma unroll
        for (u32 i = 0; i < 3; ++i) {
            const T* const of_axis = numbers + i;
            const T st = __ldg(of_axis + 9), su = __ldg(of_axis + 15), tu = __ldg(of_axis + 18), stu = __ldg(of_axis + 21);
            along_x[i] = __ldg(of_axis + 3) + t * st;
            slope_x[i] = su + t * stu;
            along_y[i] = __ldg(of_axis + 6) + s * st;
            slope_y[i] = tu + s * stu;
            along_z[i] = __ldg(of_axis + 12) + s * su + t * (tu + s * stu);
        }
        scale = WEIGHTS[p] * WEIGHTS[q] * __ldg(numbers + 24);
    }

    // Turns slopes at a point into fluxes.
    __device__ inline void act(T& x, T& y, T& z, u32 point) const {
        const T u = POINTS[point];
        T j_x[3], j_y[3];
#pragma unroll
        for (u32 i = 0; i < 3; ++i) {
            j_x[i] = along_x[i] + u * slope_x[i];
            j_y[i] = along_y[i] + u * slope_y[i];
        }
        // Rows of det J J^-1.
        T rows[3][3], flux[3];
        cross(rows[0], j_y, along_z);
        cross(rows[1], along_z, j_x);
        cross(rows[2], j_x, j_y);
        const T determinant = j_x[0] * rows[0][0] + j_x[1] * rows[0][1] + j_x[2] * rows[0][2];
        const T factor = scale * WEIGHTS[point] * reciprocal(determinant);
#pragma unroll
        for (u32 i = 0; i < 3; ++i) flux[i] = factor * (rows[0][i] * x + rows[1][i] * y + rows[2][i] * z);
        x = rows[0][0] * flux[0] + rows[0][1] * flux[1] + rows[0][2] * flux[2];
        y = rows[1][0] * flux[0] + rows[1][1] * flux[1] + rows[1][2] * flux[2];
        z = rows[2][0] * flux[0] + rows[2][1] * flux[1] + rows[2][2] * flux[2];
    }
};

// D^T G D at a column of points: values come in `values`, slopes along x and y in the other two tensors.
__device__ inline void act(T* values, T* along_x, T* along_y, const Metric& metric) {
    T u[N], slopes[N] = {}, sums[N] = {};
    load_line(u, values, LAYER);
    add_product<Slopes>(slopes, u);
#pragma unroll
    for (u32 i = 0; i < N; ++i) {
        T x = along_x[i * LAYER], y = along_y[i * LAYER];
        metric.act(x, y, slopes[i], i);
        along_x[i * LAYER] = x;
        along_y[i * LAYER] = y;
    }
    add_product<Transposed<Slopes>>(sums, slopes);
    store_line(values, sums, LAYER);
}

// `numbers`: the data of all cells, [cell][NUMBERS].
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS)
    box_mapped_residual(T* r, const T* b, const T* x, const T* numbers, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool has_row = team < TEAMS && number < cells.count();
    Cell cell(cells, has_row ? number : 0);
    T* const values = shared + (has_row ? team : 0) * (3 * TENSOR + 2 * LAYER);
    T *const along_x = values + TENSOR, *const along_y = along_x + TENSOR, *const handed = along_y + TENSOR;
    const u32 p = own % N, q = own / N, begin = cell.at[0], n_cells = (u32)cells.cells[0];
    const u32 end = begin + (u32)cells.steps[0] < n_cells ? begin + (u32)cells.steps[0] : n_cells;
    const u32 x_line = p * ROW + q * LAYER, y_line = p + q * LAYER, z_line = p + q * ROW;
    const bool is_zero = cell.is_given(cells, 1, q), is_first = cell.is_first(cells, 1, q);

    // The number of cells of the longest row of a block.
    for (u32 turn = 0; turn <= (u32)cells.steps[0]; ++turn) {
        cell.at[0] = begin + turn - 1;
        const bool is_active = has_row && begin + turn > 0 && begin + turn <= end;
        const Nodes nodes(cells, cell, K, K, K);
        const u64 column = nodes.first + p + q * nodes.row;
        if (is_active) {
            T line[N], at_points[N] = {};
            load_line(line, x + column, nodes.layer);
            add_product<Values>(at_points, line);
            store_line(values + z_line, at_points, LAYER);
        }
        __syncthreads();
        if (is_active) {
            T at_points[N] = {}, slopes[N] = {};
            evaluate(at_points, slopes, values + x_line, 1);
            store_line(values + x_line, at_points, 1);
            store_line(along_x + x_line, slopes, 1);
        }
        __syncthreads();
        if (is_active) {
            T at_points[N] = {}, slopes[N] = {};
            evaluate(at_points, slopes, values + y_line, ROW);
            store_line(values + y_line, at_points, ROW);
            store_line(along_y + y_line, slopes, ROW);
            transform<Values>(along_x + y_line, ROW);
        }
        __syncthreads();
        if (is_active) {
            const Metric metric(numbers + NUMBERS * cell.number(cells), p, q);
            act(values + z_line, along_x + z_line, along_y + z_line, metric);
        }
        __syncthreads();
        if (is_active) {
            integrate(values + y_line, along_y + y_line, ROW);
            transform<Transposed<Values>>(along_x + y_line, ROW);
        }
        __syncthreads();
        if (is_active) integrate(values + x_line, along_x + x_line, 1);
        __syncthreads();
        if (is_active) {
            T line[N], product[N] = {};
            load_line(line, values + z_line, LAYER);
            add_product<Transposed<Values>>(product, line);
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
                    const u64 node = column + i * nodes.layer;
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
