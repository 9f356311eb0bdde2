// The tangent of any form at a column of points, by the text of `tangent.cuh`:
//   (df0, df1) = D' (du, grad du),
// with slots [component][value, derivatives along the axes of space].
//
// A cell has [numbers of the cell], then [layer][number][point of the layer]. The geometry is the inverse Jacobian by rows, its
// entry (a, i) the derivative of axis a of the reference cell along axis i of space, and |det J|: FEMTILE_METRIC 0: at all
// points, where |det J| has the weight of the point; 1: first of the numbers of a cell. Numbers of the tangent follow, as it
// reads them: FEMTILE_TANGENT_CELL of the cell, FEMTILE_TANGENT_POINT at points; the text takes those of the cell first.
#pragma once
#include "lines.cuh"

// The numbers of all cells.
struct Metrics {
    const T* numbers;
};

const u32 SLOTS = TOGETHER * (1 + DIMENSION), GEOMETRY = DIMENSION * DIMENSION + 1;
const u32 OF_CELL = FEMTILE_TANGENT_CELL, AT_POINT = FEMTILE_TANGENT_POINT;
const u32 CELL_GEOMETRY = FEMTILE_METRIC == 1 ? GEOMETRY : 0, POINT_GEOMETRY = GEOMETRY - CELL_GEOMETRY;
const u32 POINT_NUMBERS = POINT_GEOMETRY + AT_POINT;
// Points of a column that are computed at the same time: with more, registers spill.
const u32 POINTS_AT_A_TIME = 2;
const u32 CELL_NUMBERS = CELL_GEOMETRY + OF_CELL + Q * LAYER_POINTS * POINT_NUMBERS;

#include "tangent_action.cuh"

// The tangent at a column of points.
struct PointTangent {
    const T *of_cell, *of_column;
    T weight;

    __device__ inline PointTangent(const T* of_cell, u32 x, u32 y)
        : of_cell(of_cell), of_column(of_cell + CELL_GEOMETRY + OF_CELL + x + Q * y) {
        if (FEMTILE_METRIC == 1) weight = (DIMENSION == 3 ? WEIGHTS[x] * WEIGHTS[y] : WEIGHTS[x]) * __ldg(of_cell + GEOMETRY - 1);
    }

    __device__ inline T at_point(u32 plane, u32 number) const {
        return __ldcs(of_column + (plane * POINT_NUMBERS + number) * LAYER_POINTS);
    }
    __device__ inline T geometry(u32 plane, u32 entry) const {
        return FEMTILE_METRIC == 1 ? __ldg(of_cell + entry) : at_point(plane, entry);
    }

    // Turns values and derivatives along the axes of the reference cell into weighted df0 and df1 along those axes.
    __device__ inline void act(T (&values)[TOGETHER], T (&slopes)[TOGETHER][DIMENSION], u32 plane) const {
        T inverse[DIMENSION][DIMENSION], in[SLOTS + OF_CELL + AT_POINT];
#pragma unroll
        for (u32 a = 0; a < DIMENSION; ++a) {
#pragma unroll
            for (u32 i = 0; i < DIMENSION; ++i) inverse[a][i] = geometry(plane, a * DIMENSION + i);
        }
        const T w = FEMTILE_METRIC == 1 ? weight * WEIGHTS[plane] : geometry(plane, GEOMETRY - 1);
#pragma unroll
        for (u32 i = 0; i < OF_CELL; ++i) in[SLOTS + i] = __ldg(of_cell + CELL_GEOMETRY + i);
#pragma unroll
        for (u32 i = 0; i < AT_POINT; ++i) in[SLOTS + OF_CELL + i] = at_point(plane, POINT_GEOMETRY + i);
        act_in_space(values, slopes, inverse, w, in);
    }
};

// Applies the tangent to the entries at distance `at` of the values and of the slopes along the axes of all components, and adds
// their part of x.A x.
__device__ inline void act_on_fields(
    const PointTangent& metric, double& product, T* values, T* const (&along)[DIMENSION], u32 at, u32 plane) {
    T value[TOGETHER] = {}, slopes[TOGETHER][DIMENSION];
#pragma unroll
    for (u32 c = 0; c < TOGETHER; ++c) {
        if (FEMTILE_MASS) value[c] = values[c * FIELD + at];
#pragma unroll
        for (u32 d = 0; d < DIMENSION; ++d) slopes[c][d] = along[d][c * FIELD + at];
    }
    metric.act(value, slopes, plane);
#pragma unroll
    for (u32 c = 0; c < TOGETHER; ++c) {
#if FEMTILE_PRODUCT
        double sum = FEMTILE_MASS ? (double)values[c * FIELD + at] * value[c] : 0.0;
#pragma unroll
        for (u32 d = 0; d < DIMENSION; ++d) sum += (double)along[d][c * FIELD + at] * slopes[c][d];
        product += sum;
#endif
        if (FEMTILE_MASS) values[c * FIELD + at] = value[c];
#pragma unroll
        for (u32 d = 0; d < DIMENSION; ++d) along[d][c * FIELD + at] = slopes[c][d];
    }
}
