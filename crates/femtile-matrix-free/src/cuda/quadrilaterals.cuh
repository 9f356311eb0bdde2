// The operator on the components of a quadrilateral that are computed at the same time.
//
// A thread holds a column of nodes or points along y in registers, and takes a row along x from shared memory. Tensors stay there
// from step to step, so registers hold the lines of one component at a time, and at a point the metric is read once for all.
#pragma once
#include "lines.cuh"
#if FEMTILE_TANGENT
#include "point_tangent.cuh"
#else
#include "metric.cuh"
#include "product.cuh"
#endif

// Whether lines along x take part: nodes that are points have a diagonal mass.
const bool HAS_ROWS = FEMTILE_STIFFNESS || !FEMTILE_COLLOCATED;

// Points of a column whose metric is read at the same time: with all, registers spill.
const u32 AT_A_TIME = Q < 5 ? Q : 4;

// A thread in a cell of its batch: its column and its row of each tensor, both with number `a`.
struct Place {
    T *values, *along_x;
    u32 a;
    static const u32 b = 0;

    __device__ inline Place(T* shared, u32 cell, u32 within) {
        values = shared + cell * TOGETHER * FIELD;
        along_x = values + TENSOR;
        a = within;
    }
    __device__ inline u32 row() const { return a * ROW; }
    // Slopes along y, in place of the values where these are not wanted any more.
    __device__ inline T* along_y() const { return values + (FEMTILE_MASS ? 2 * TENSOR : 0); }
    // Whether there are nodes in the column.
    __device__ inline bool is_node() const { return a < N; }
};

// Interpolates along y from the nodes of a column.
__device__ inline void interpolate_column(const T (&nodes)[TOGETHER][N], const Place& place) {
#pragma unroll
    for (u32 c = 0; c < TOGETHER; ++c) {
        T* const column = place.values + c * FIELD + place.a;
#if FEMTILE_COLLOCATED
        store_line(column, nodes[c], ROW);
#else
        T at_points[Q];
        contract<Values>(at_points, nodes[c]);
        store_line(column, at_points, ROW);
#endif
    }
}

// Interpolates and differentiates along x.
__device__ inline void evaluate_row(const Place& place) {
    for_fields([&](u32 field) {
        T* const row = place.values + field + place.row();
        T nodes[N], at_points[Q];
        load_line(nodes, row, 1);
#if FEMTILE_COLLOCATED
#pragma unroll
        for (u32 i = 0; i < N; ++i) at_points[i] = nodes[i];
#else
        contract<Values>(at_points, nodes);
        store_line(row, at_points, 1);
#endif
#if FEMTILE_STIFFNESS
        T slopes[Q];
        contract<Slopes>(slopes, at_points);
        store_line(place.along_x + field + place.row(), slopes, 1);
#endif
    });
}

#if FEMTILE_TANGENT
typedef PointTangent Metric;
#endif

// Applies D^T G D + mu, or the tangent of a form, at a column of points, up to the sum over x, and adds the column's part of
// x.A x to `product`.
__device__ inline void act_at_points(const Metric& metric, double& product, const Place& place) {
    T *const x = place.along_x + place.a, *const y = place.along_y() + place.a, *const values = place.values + place.a;
#if FEMTILE_STIFFNESS
    for_fields([&](u32 field) { contract_line<Slopes>(y + field, values + field, ROW); });
#endif
#if FEMTILE_TANGENT
    T* const along[2] = {x, y};
#pragma unroll POINTS_AT_A_TIME
    for (u32 k = 0; k < Q; ++k) act_on_fields(metric, product, values, along, k * ROW, k);
#else
#pragma unroll AT_A_TIME
    for (u32 k = 0; k < Q; ++k) {
        T slopes[TOGETHER][2] = {}, fluxes[TOGETHER][2] = {};
#pragma unroll
        for (u32 c = 0; c < (FEMTILE_STIFFNESS ? TOGETHER : 0); ++c) {
            const u32 at = c * FIELD + k * ROW;
            fluxes[c][0] = slopes[c][0] = x[at];
            fluxes[c][1] = slopes[c][1] = y[at];
        }
        const T mu = metric.act(fluxes, k);
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
            const u32 at = c * FIELD + k * ROW;
            const T value = FEMTILE_MASS ? values[at] : (T)0;
            add_product(product, slopes[c], fluxes[c], value, mu);
#if FEMTILE_STIFFNESS
            x[at] = fluxes[c][0];
            y[at] = fluxes[c][1];
#endif
            if (FEMTILE_MASS) values[at] = mu * value;
        }
    }
#endif
#if FEMTILE_STIFFNESS
    for_fields([&](u32 field) {
        T* const column = values + field;
        T fluxes[Q], sums[Q];
        load_line(fluxes, y + field, ROW);
        contract<Transposed<Slopes>>(sums, fluxes);
#pragma unroll
        for (u32 k = 0; k < Q; ++k) column[k * ROW] = FEMTILE_MASS ? column[k * ROW] + sums[k] : sums[k];
    });
#endif
}

// The transpose of evaluate_row.
__device__ inline void integrate_row(const Place& place) {
    for_fields([&](u32 field) {
        T* const row = place.values + field + place.row();
        T sums[Q];
        load_line(sums, row, 1);
#if FEMTILE_STIFFNESS
        T fluxes[Q], products[Q];
        load_line(fluxes, place.along_x + field + place.row(), 1);
        contract<Transposed<Slopes>>(products, fluxes);
#pragma unroll
        for (u32 i = 0; i < Q; ++i) sums[i] += products[i];
#endif
#if FEMTILE_COLLOCATED
        store_line(row, sums, 1);
#else
        T nodes[N];
        contract<Transposed<Values>>(nodes, sums);
        store_line(row, nodes, 1);
#endif
    });
}

// The transpose of interpolate_column.
__device__ inline void integrate_column(T (&nodes)[TOGETHER][N], const Place& place) {
#pragma unroll
    for (u32 c = 0; c < TOGETHER; ++c) {
        T sums[Q];
        load_line(sums, place.values + c * FIELD + place.a, ROW);
#if FEMTILE_COLLOCATED
#pragma unroll
        for (u32 k = 0; k < N; ++k) nodes[c][k] = sums[k];
#else
        contract<Transposed<Values>>(nodes[c], sums);
#endif
    }
}

// Applies the operator of a cell to the values at a column of nodes. Calls `meanwhile` when the metric is no longer needed.
template <typename Meanwhile>
__device__ inline void apply_cell(
    T (&nodes)[TOGETHER][N], double& product, const Place& place, const T* of_cell, bool is_active,
    const Meanwhile& meanwhile) {
#if FEMTILE_METRIC == 0 && !FEMTILE_TANGENT
    const Metric metric(of_cell, place.a, 0, is_active);
#endif
    if (is_active && place.is_node()) interpolate_column(nodes, place);
    // Also between the sums of a batch and those of the next one.
    __syncthreads();
    if (HAS_ROWS) {
        if (is_active) evaluate_row(place);
        __syncthreads();
    }
    if (is_active) {
#if FEMTILE_TANGENT
        const Metric metric(of_cell, place.a, 0);
#elif FEMTILE_METRIC != 0
        // Not earlier, as it takes many registers.
        const Metric metric(of_cell, place.a, 0, is_active);
#endif
        act_at_points(metric, product, place);
    }
    if (HAS_ROWS) __syncthreads();
    meanwhile();
    if (HAS_ROWS) {
        if (is_active) integrate_row(place);
        __syncthreads();
    }
    if (is_active && place.is_node()) integrate_column(nodes, place);
}
