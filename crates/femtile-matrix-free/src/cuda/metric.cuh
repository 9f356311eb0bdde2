// The metric at a column of points: G = |det J| J^-1 sigma J^-T with weights, as xx, yy, zz, yz, xz, xy on hexahedra and as xx,
// yy, xy on quadrilaterals, and mu.
//
// FEMTILE_METRIC 0: stored at all points, [cell][layer][entry][point of the layer]. 1: one a cell, [cell][8] or [cell][4].
// 2: computed from the corners of a cell and its coefficients, [cell][32] or [cell][12].
//
// FEMTILE_AT_POINTS: sigma, a scalar, and lambda at all points follow the numbers of a cell, [layer][term][point of the layer];
// those numbers are then of sigma = 1 and lambda = 1.
//
// `act` turns the slopes of all components at a point into fluxes, and returns the factor of the value.
#pragma once
#include "lines.cuh"
#include "reciprocal.cuh"

// Several passes over the components of a cell find its numbers in the cache.
__device__ inline T load_number(const T* at) { return COMPONENTS == TOGETHER ? __ldcs(at) : __ldg(at); }

// The numbers of all cells.
struct Metrics {
    const T* numbers;
};

// Entries of a symmetric tensor, those stored at a point, and the place of mu.
const u32 OF_TENSOR = DIMENSION == 3 ? 6 : 3;
const u32 ENTRIES = OF_TENSOR * FEMTILE_STIFFNESS + FEMTILE_MASS;
const u32 MU = OF_TENSOR * FEMTILE_STIFFNESS;
// Numbers per cell.
const u32 OF_CONSTANT = DIMENSION == 3 ? 8 : 4, OF_CORNERS = DIMENSION == 3 ? 32 : 12;
const u32 OF_CELL = FEMTILE_METRIC == 0 ? Q * ENTRIES * LAYER_POINTS : FEMTILE_METRIC == 1 ? OF_CONSTANT : OF_CORNERS;
const u32 TERMS = FEMTILE_STIFFNESS + FEMTILE_MASS;
const u32 CELL_NUMBERS = OF_CELL + FEMTILE_AT_POINTS * Q * TERMS * LAYER_POINTS;

// Entries are passed by value: with references more registers are taken.
__device__ inline void multiply(T (&g)[3], T xx, T yy, T zz, T yz, T xz, T xy) {
    const T x = g[0], y = g[1], z = g[2];
    g[0] = xx * x + xy * y + xz * z;
    g[1] = xy * x + yy * y + yz * z;
    g[2] = xz * x + yz * y + zz * z;
}
__device__ inline void multiply(T (&g)[2], T xx, T yy, T xy) {
    const T x = g[0], y = g[1];
    g[0] = xx * x + xy * y;
    g[1] = xy * x + yy * y;
}
__device__ inline void multiply(T (&g)[3], const T (&m)[6]) { multiply(g, m[0], m[1], m[2], m[3], m[4], m[5]); }
__device__ inline void multiply(T (&g)[2], const T (&m)[3]) { multiply(g, m[0], m[1], m[2]); }

// Coefficients at a column of points; ones where they are part of the numbers of a cell. Few are kept from the beginning, so that
// they arrive while slopes are computed.
struct AtPoints {
    static const bool IS_KEPT = FEMTILE_AT_POINTS && Q * TERMS <= 8;
    const T* numbers;
    T kept[IS_KEPT ? Q * TERMS : 1];

    __device__ inline AtPoints(const T* of_cell, u32 x, u32 y, bool is_active) : numbers(of_cell + OF_CELL + x + Q * y) {
#pragma unroll
        for (u32 i = 0; i < (IS_KEPT ? Q * TERMS : 0); ++i) kept[i] = is_active ? load_number(numbers + i * LAYER_POINTS) : (T)0;
    }
    __device__ inline T at(u32 plane, u32 term) const {
        const u32 i = plane * TERMS + term;
        return !FEMTILE_AT_POINTS ? (T)1 : IS_KEPT ? kept[i] : load_number(numbers + i * LAYER_POINTS);
    }
    __device__ inline T sigma(u32 plane) const { return FEMTILE_STIFFNESS ? at(plane, 0) : (T)1; }
    __device__ inline T lambda(u32 plane) const { return FEMTILE_MASS ? at(plane, FEMTILE_STIFFNESS) : (T)0; }
};

#if FEMTILE_METRIC == 0
struct Metric {
    const T* entries;
    T first[ENTRIES];

    // Loads the first layer early, while the cell's slopes are computed.
    __device__ inline Metric(const T* of_cell, u32 x, u32 y, bool is_active) : entries(of_cell + x + Q * y) {
#pragma unroll
        for (u32 e = 0; e < (IS_EAGER ? ENTRIES : 0); ++e) {
            first[e] = is_active ? load_number(entries + e * LAYER_POINTS) : (T)0;
        }
    }
    __device__ inline T entry(u32 plane, u32 e) const {
        return IS_EAGER && plane == 0 ? first[e] : load_number(entries + (plane * ENTRIES + e) * LAYER_POINTS);
    }

    __device__ inline T act(T (&g)[TOGETHER][DIMENSION], u32 plane) const {
#if FEMTILE_STIFFNESS
        T m[OF_TENSOR];
#pragma unroll
        for (u32 e = 0; e < OF_TENSOR; ++e) m[e] = entry(plane, e);
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) multiply(g[c], m);
#endif
        return FEMTILE_MASS ? entry(plane, MU) : (T)0;
    }
};
#else
// The weight of a point is that of its column times that of its layer.
__device__ inline T column_weight(u32 x, u32 y) { return DIMENSION == 3 ? WEIGHTS[x] * WEIGHTS[y] : WEIGHTS[x]; }
#endif

#if FEMTILE_METRIC == 1
struct Metric {
    T g[OF_TENSOR], mu;
    AtPoints coefficients;

    __device__ inline Metric(const T* of_cell, u32 x, u32 y, bool is_active) : coefficients(of_cell, x, y, is_active) {
        const T weight = column_weight(x, y);
#pragma unroll
        for (u32 e = 0; e < OF_TENSOR; ++e) g[e] = weight * __ldg(of_cell + e);
        mu = weight * __ldg(of_cell + OF_TENSOR);
    }
    __device__ inline T act(T (&slopes)[TOGETHER][DIMENSION], u32 plane) const {
        const T w = WEIGHTS[plane], of_slopes = w * coefficients.sigma(plane);
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
#pragma unroll
            for (u32 d = 0; d < DIMENSION; ++d) slopes[c][d] *= of_slopes;
            multiply(slopes[c], g);
        }
        return w * coefficients.lambda(plane) * mu;
    }
};
#endif

#if FEMTILE_METRIC == 2 && FEMTILE_DIMENSION == 2
#include "bilinear.cuh"
#elif FEMTILE_METRIC == 2
#include "trilinear.cuh"
#endif
