// The operator on several components of a hexahedron at the same time, and the tangent of any form on all of them.
//
// Tensors stay in shared memory from step to step, so registers hold the lines of one component at a time, and at a point the
// metric is read once for all components.
#pragma once
#include "hexahedron_places.cuh"
#if FEMTILE_TANGENT
#include "point_tangent.cuh"
#else
#include "metric.cuh"
#include "product.cuh"
#endif

// Slopes along the third axis.
__device__ inline T* along_z(const Place& place) { return place.values + (FEMTILE_MASS ? 3 * TENSOR : 0); }

// Stores the values at a column of nodes and interpolates them to the points.
__device__ inline void interpolate(const T (&nodes)[TOGETHER][N], const Place& place, bool is_active) {
    if (is_active && place.is_node()) {
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
            T* const line = place.values + c * FIELD + place.z_line();
#if FEMTILE_COLLOCATED
            store_line(line, nodes[c], LAYER);
#else
            T at_points[Q];
            contract<Values>(at_points, nodes[c]);
            store_line(line, at_points, LAYER);
#endif
        }
    }
    __syncthreads();
#if !FEMTILE_COLLOCATED
    if (is_active && place.is_first_node()) {
        for_fields([&](u32 field) {
            T* const line = place.values + field + place.x_line();
            contract_line<Values>(line, line, 1);
        });
    }
    __syncthreads();
    if (is_active) {
        for_fields([&](u32 field) {
            T* const line = place.values + field + place.y_line();
            contract_line<Values>(line, line, ROW);
        });
    }
    __syncthreads();
#endif
}

#if FEMTILE_TANGENT
typedef PointTangent Metric;

// Applies the tangent to the slopes and values at a column of points, and adds the column's part of x.A x to `product`.
__device__ inline void act_at_points(const Metric& metric, double& product, const Place& place) {
    const u32 line = place.z_line();
    T* const along[3] = {place.along_x + line, place.along_y + line, along_z(place) + line};
#pragma unroll POINTS_AT_A_TIME
    for (u32 k = 0; k < Q; ++k) act_on_fields(metric, product, place.values + line, along, k * LAYER, k);
}
#else
// Applies the metric to the slopes and values at a column of points, and adds the column's part of x.A x to `product`.
__device__ inline void act_at_points(const Metric& metric, double& product, const Place& place) {
    T *const x = place.along_x + place.z_line(), *const y = place.along_y + place.z_line();
    T *const z = along_z(place) + place.z_line(), *const values = place.values + place.z_line();
#pragma unroll
    for (u32 k = 0; k < Q; ++k) {
        T slopes[TOGETHER][3] = {}, fluxes[TOGETHER][3] = {};
#pragma unroll
        for (u32 c = 0; c < (FEMTILE_STIFFNESS ? TOGETHER : 0); ++c) {
            const u32 at = c * FIELD + k * LAYER;
            fluxes[c][0] = slopes[c][0] = x[at];
            fluxes[c][1] = slopes[c][1] = y[at];
            fluxes[c][2] = slopes[c][2] = z[at];
        }
        const T mu = metric.act(fluxes, k);
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
            const u32 at = c * FIELD + k * LAYER;
            const T value = FEMTILE_MASS ? values[at] : (T)0;
            add_product(product, slopes[c], fluxes[c], value, mu);
#if FEMTILE_STIFFNESS
            x[at] = fluxes[c][0];
            y[at] = fluxes[c][1];
            z[at] = fluxes[c][2];
#endif
            if (FEMTILE_MASS) values[at] = mu * value;
        }
    }
}
#endif

// Applies D^T G D + mu to the values at the points, up to the last sum; `of_cell` is the metric of the cell.
template <typename Meanwhile>
__device__ inline void act(
    double& product, const Place& place, const T* of_cell, bool is_active, const Meanwhile& meanwhile) {
#if FEMTILE_METRIC != 2 && !FEMTILE_TANGENT
    const Metric metric(of_cell, place.a, place.b, is_active);
#endif
#if FEMTILE_STIFFNESS
    if (is_active) {
        for_fields([&](u32 field) {
            const T* const values = place.values + field;
            contract_line<Slopes>(place.along_x + field + place.x_line(), values + place.x_line(), 1);
            contract_line<Slopes>(place.along_y + field + place.y_line(), values + place.y_line(), ROW);
        });
    }
    __syncthreads();
    // From here to the next barrier a thread has its own column alone.
    if (is_active) {
        for_fields([&](u32 field) {
            const u32 line = field + place.z_line();
            contract_line<Slopes>(along_z(place) + line, place.values + line, LAYER);
        });
    }
#endif
    if (is_active) {
#if FEMTILE_TANGENT
        const Metric metric(of_cell, place.a, place.b);
#elif FEMTILE_METRIC == 2
        // Not earlier, as it takes many registers.
        const Metric metric(of_cell, place.a, place.b, is_active);
#endif
        act_at_points(metric, product, place);
    }
#if FEMTILE_STIFFNESS
    __syncthreads();
#endif
    meanwhile();
#if FEMTILE_STIFFNESS
    if (is_active) {
        for_fields([&](u32 field) {
            T *const x = place.along_x + field + place.x_line(), *const y = place.along_y + field + place.y_line();
            T* const z = along_z(place) + field + place.z_line();
            contract_line<Transposed<Slopes>>(x, x, 1);
            contract_line<Transposed<Slopes>>(y, y, ROW);
            contract_line<Transposed<Slopes>>(z, z, LAYER);
        });
    }
    __syncthreads();
#endif
}

// Sums what slopes and values contribute at a column of points.
__device__ inline void sum_column(T (&sums)[Q], const Place& place, u32 field) {
#pragma unroll
    for (u32 k = 0; k < Q; ++k) {
        const u32 at = field + place.z_line() + k * LAYER;
        sums[k] = FEMTILE_MASS ? place.values[at] : (T)0;
        if (FEMTILE_STIFFNESS) sums[k] += along_z(place)[at] + (place.along_x[at] + place.along_y[at]);
    }
}

// The transpose of interpolate, of the sums at the points.
__device__ inline void integrate(T (&nodes)[TOGETHER][N], const Place& place, bool is_active) {
#if FEMTILE_COLLOCATED
    if (is_active) {
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) sum_column(nodes[c], place, c * FIELD);
    }
#else
    if (is_active) {
        for_fields([&](u32 field) {
            T sums[Q], line[N];
            sum_column(sums, place, field);
            contract<Transposed<Values>>(line, sums);
            store_line(place.values + field + place.z_line(), line, LAYER);
        });
    }
    __syncthreads();
    if (is_active && place.b < N) {
        for_fields([&](u32 field) {
            T* const line = place.values + field + place.y_line();
            contract_line<Transposed<Values>>(line, line, ROW);
        });
    }
    __syncthreads();
    if (is_active && place.is_node()) {
        for_fields([&](u32 field) {
            T* const line = place.values + field + place.x_line();
            contract_line<Transposed<Values>>(line, line, 1);
        });
    }
    __syncthreads();
    if (is_active && place.is_node()) {
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) load_line(nodes[c], place.values + c * FIELD + place.z_line(), LAYER);
    }
#endif
}

// Applies the operator of a cell to the values at a column of nodes. Calls `meanwhile` when the metric is no longer needed.
template <typename Meanwhile>
__device__ inline void apply_cell(
    T (&nodes)[TOGETHER][N], double& product, const Place& place, const T* of_cell, bool is_active,
    const Meanwhile& meanwhile) {
    interpolate(nodes, place, is_active);
    act(product, place, of_cell, is_active, meanwhile);
    integrate(nodes, place, is_active);
}
