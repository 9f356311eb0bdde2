// The operator on one component of a hexahedron.
#pragma once
#include "hexahedron_places.cuh"
#include "metric.cuh"
#include "product.cuh"

// Interpolates u to a column of points; the values also lie in `values`.
__device__ inline void interpolate(T (&at_points)[Q], const T (&u)[N], const Place& place, bool is_active) {
#if FEMTILE_COLLOCATED
#pragma unroll
    for (u32 k = 0; k < Q; ++k) at_points[k] = u[k];
    if (is_active && FEMTILE_STIFFNESS) store_line(place.values + place.z_line(), at_points, LAYER);
    __syncthreads();
#else
    if (is_active && place.is_node()) {
        contract<Values>(at_points, u);
        store_line(place.values + place.z_line(), at_points, LAYER);
    }
    __syncthreads();
    if (is_active && place.is_first_node()) {
        contract_line<Values>(place.values + place.x_line(), place.values + place.x_line(), 1);
    }
    __syncthreads();
    if (is_active) contract_line<Values>(place.values + place.y_line(), place.values + place.y_line(), ROW);
    __syncthreads();
    if (is_active) load_line(at_points, place.values + place.z_line(), LAYER);
#endif
}

// The transpose of interpolate.
__device__ inline void integrate(T (&r)[N], const T (&at_points)[Q], const Place& place, bool is_active) {
#if FEMTILE_COLLOCATED
#pragma unroll
    for (u32 k = 0; k < N; ++k) r[k] = at_points[k];
#else
    if (is_active) {
        T line[N];
        contract<Transposed<Values>>(line, at_points);
        store_line(place.values + place.z_line(), line, LAYER);
    }
    __syncthreads();
    if (is_active && place.b < N) {
        contract_line<Transposed<Values>>(place.values + place.y_line(), place.values + place.y_line(), ROW);
    }
    __syncthreads();
    if (is_active && place.is_node()) {
        contract_line<Transposed<Values>>(place.values + place.x_line(), place.values + place.x_line(), 1);
    }
    __syncthreads();
    if (is_active && place.is_node()) load_line(r, place.values + place.z_line(), LAYER);
#endif
}

// Applies D^T G D + mu to values at a column of points, which also lie in `values`; `of_cell` is the metric of the
// cell. Calls `meanwhile` when the metric is no longer needed, and adds the column's part of x.A x to `product`.
template <typename Meanwhile>
__device__ inline void act(
    T (&u)[Q], double& product, const Place& place, const T* of_cell, bool is_active, const Meanwhile& meanwhile) {
#if FEMTILE_METRIC != 2
    const Metric metric(of_cell, place.a, place.b, is_active);
#endif
#if FEMTILE_STIFFNESS
    if (is_active) {
        contract_line<Slopes>(place.along_x + place.x_line(), place.values + place.x_line(), 1);
        contract_line<Slopes>(place.along_y + place.y_line(), place.values + place.y_line(), ROW);
    }
    T along_z[Q];
    contract<Slopes>(along_z, u);
    __syncthreads();
    if (is_active) {
#if FEMTILE_METRIC == 2
        // Not earlier, as it takes many registers.
        const Metric metric(of_cell, place.a, place.b, is_active);
#endif
        T *const x = place.along_x + place.z_line(), *const y = place.along_y + place.z_line();
#pragma unroll
        for (u32 k = 0; k < Q; ++k) {
            const T slope[3] = {x[k * LAYER], y[k * LAYER], along_z[k]};
            T fluxes[1][3] = {{slope[0], slope[1], slope[2]}};
            const T mu = metric.act(fluxes, k);
            const T(&g)[3] = fluxes[0];
            add_product(product, slope, g, u[k], mu);
            x[k * LAYER] = g[0];
            y[k * LAYER] = g[1];
            along_z[k] = g[2];
            u[k] = FEMTILE_MASS ? mu * u[k] : (T)0;
        }
    }
    __syncthreads();
    meanwhile();
    if (is_active) {
        contract_line<Transposed<Slopes>>(place.along_x + place.x_line(), place.along_x + place.x_line(), 1);
        contract_line<Transposed<Slopes>>(place.along_y + place.y_line(), place.along_y + place.y_line(), ROW);
    }
    T sums[Q];
    contract<Transposed<Slopes>>(sums, along_z);
    __syncthreads();
    if (is_active) {
#pragma unroll
        for (u32 k = 0; k < Q; ++k) {
            const u32 at = place.z_line() + k * LAYER;
            u[k] += sums[k] + (place.along_x[at] + place.along_y[at]);
        }
    }
#else
    if (is_active) {
#if FEMTILE_METRIC == 2
        const Metric metric(of_cell, place.a, place.b, is_active);
#endif
#pragma unroll
        for (u32 k = 0; k < Q; ++k) {
            T none[1][3] = {};
            const T mu = metric.act(none, k);
            add_product(product, none[0], none[0], u[k], mu);
            u[k] *= mu;
        }
    }
    meanwhile();
#endif
}

// Applies the operator of a cell to the values at a column of nodes. Calls `meanwhile` when the metric is no longer needed.
template <typename Meanwhile>
__device__ inline void apply_cell(
    T (&nodes)[TOGETHER][N], double& product, const Place& place, const T* of_cell, bool is_active,
    const Meanwhile& meanwhile) {
    T u[Q] = {};
    interpolate(u, nodes[0], place, is_active);
    act(u, product, place, of_cell, is_active, meanwhile);
    integrate(nodes[0], u, place, is_active);
}
