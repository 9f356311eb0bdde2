// The metric at a column of points: G = |det J| J^-1 sigma J^-T with weights, as xx, yy, zz, yz, xz, xy, and mu.
//
// FEMTILE_METRIC 0: stored at all points, [cell][plane][entry][point of the plane], in numbers M that may be shorter. 1: one a cell, [cell][8]. 2: computed
// from the eight corners of a cell and its coefficients, [cell][32].
//
// `act` turns the slopes of all components at a point into fluxes, and returns the factor of the value.
#pragma once
#include "lines.cuh"
#include "reciprocal.cuh"

typedef FEMTILE_METRIC_T M;

// Several passes over the components of a cell find its numbers in the cache.
__device__ inline M load_number(const M* at) { return COMPONENTS == TOGETHER ? __ldcs(at) : __ldg(at); }

// The numbers of all cells.
struct Metrics {
    const M* numbers;
};

const u32 ENTRIES = 6 * FEMTILE_STIFFNESS + FEMTILE_MASS;
const u32 MU = 6 * FEMTILE_STIFFNESS;
// Numbers per cell.
const u32 CELL_NUMBERS = FEMTILE_METRIC == 0 ? Q * ENTRIES * LAYER_POINTS : FEMTILE_METRIC == 1 ? 8 : 32;

__device__ inline void multiply(T (&g)[3], T xx, T yy, T zz, T yz, T xz, T xy) {
    const T x = g[0], y = g[1], z = g[2];
    g[0] = xx * x + xy * y + xz * z;
    g[1] = xy * x + yy * y + yz * z;
    g[2] = xz * x + yz * y + zz * z;
}

#if FEMTILE_METRIC == 0
struct Metric {
    const M* entries;
    M first[ENTRIES];

    // Loads the first plane early, while the cell's slopes are computed.
    __device__ inline Metric(const M* of_cell, u32 x, u32 y, bool is_active) : entries(of_cell + x + Q * y) {
#pragma unroll
        for (u32 e = 0; e < (IS_EAGER ? ENTRIES : 0); ++e) {
            first[e] = is_active ? load_number(entries + e * LAYER_POINTS) : (M)0;
        }
    }
    __device__ inline T entry(u32 plane, u32 e) const {
        return IS_EAGER && plane == 0 ? first[e] : load_number(entries + (plane * ENTRIES + e) * LAYER_POINTS);
    }

    __device__ inline T act(T (&g)[TOGETHER][3], u32 plane) const {
#if FEMTILE_STIFFNESS
        T m[6];
#pragma unroll
        for (u32 e = 0; e < 6; ++e) m[e] = entry(plane, e);
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) multiply(g[c], m[0], m[1], m[2], m[3], m[4], m[5]);
#endif
        return FEMTILE_MASS ? entry(plane, MU) : (T)0;
    }
};
#else
// The weight of a point is that of its column times that of its plane.
__device__ inline T column_weight(u32 x, u32 y) { return WEIGHTS[x] * WEIGHTS[y]; }
#endif

#if FEMTILE_METRIC == 1
struct Metric {
    T g[7], weight;

    __device__ inline Metric(const M* of_cell, u32 x, u32 y, bool) : weight(column_weight(x, y)) {
#pragma unroll
        for (u32 e = 0; e < 7; ++e) g[e] = weight * __ldg(of_cell + e);
    }
    __device__ inline T act(T (&slopes)[TOGETHER][3], u32 plane) const {
        const T w = WEIGHTS[plane];
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
#pragma unroll
            for (u32 d = 0; d < 3; ++d) slopes[c][d] *= w;
            multiply(slopes[c], g[0], g[1], g[2], g[3], g[4], g[5]);
        }
        return w * g[6];
    }
};
#endif

#if FEMTILE_METRIC == 2
// The map of a trilinear cell along a column of points: x = a + z b, with slopes of a and b along x and y.
struct Metric {
    T a[2][3], b[3][3];
    T sigma[6], lambda, weight;

    __device__ inline Metric(const M* of_cell, u32 x, u32 y, bool) : weight(column_weight(x, y)) {
        const M* const given = of_cell;
        const T s = NODES[x], t = NODES[y];
#pragma unroll
        for (u32 d = 0; d < 3; ++d) {
            T low[2], high[2];
#pragma unroll
            for (u32 z = 0; z < 2; ++z) {
                const M* const layer = given + 12 * z + d;
                const T c00 = __ldg(layer), c10 = __ldg(layer + 3), c01 = __ldg(layer + 6), c11 = __ldg(layer + 9);
                const T along_x = (c10 - c00) + t * ((c11 - c01) - (c10 - c00));
                const T along_y = (c01 - c00) + s * ((c11 - c10) - (c01 - c00));
                const T point = c00 + s * (c10 - c00) + t * along_y;
                (z == 0 ? low : high)[0] = along_x;
                (z == 0 ? low : high)[1] = along_y;
                b[2][d] = z == 0 ? -point : b[2][d] + point;
            }
#pragma unroll
            for (u32 axis = 0; axis < 2; ++axis) {
                a[axis][d] = low[axis];
                b[axis][d] = high[axis] - low[axis];
            }
        }
#pragma unroll
        for (u32 e = 0; e < (FEMTILE_ISOTROPIC ? 1 : 6); ++e) sigma[e] = __ldg(given + 24 + e);
        lambda = __ldg(given + 30);
    }

    __device__ inline T act(T (&g)[TOGETHER][3], u32 plane) const {
        // Columns of J.
        T j[2][3];
#pragma unroll
        for (u32 axis = 0; axis < 2; ++axis) {
#pragma unroll
            for (u32 d = 0; d < 3; ++d) j[axis][d] = a[axis][d] + NODES[plane] * b[axis][d];
        }
        const T (&jx)[3] = j[0], (&jy)[3] = j[1], (&jz)[3] = b[2];
        // Rows of the adjugate: det J times J^-1.
        T rows[3][3];
        cross(rows[0], jy, jz);
        const T determinant = jx[0] * rows[0][0] + jx[1] * rows[0][1] + jx[2] * rows[0][2];
        const T w = weight * WEIGHTS[plane];
        const T volume = w * (determinant < 0 ? -determinant : determinant);
#if FEMTILE_STIFFNESS
        cross(rows[1], jz, jx);
        cross(rows[2], jx, jy);
        // |det| / det^2 = 1 / |det|.
        T scale = w * reciprocal(determinant < 0 ? -determinant : determinant);
        if (FEMTILE_ISOTROPIC) scale *= sigma[0];
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
            T flux[3];
#pragma unroll
            for (u32 d = 0; d < 3; ++d) flux[d] = rows[0][d] * g[c][0] + rows[1][d] * g[c][1] + rows[2][d] * g[c][2];
            if (!FEMTILE_ISOTROPIC) {
                multiply(flux, sigma[0], sigma[1], sigma[2], sigma[3], sigma[4], sigma[5]);
            }
#pragma unroll
            for (u32 axis = 0; axis < 3; ++axis) {
                g[c][axis] = scale * (rows[axis][0] * flux[0] + rows[axis][1] * flux[1] + rows[axis][2] * flux[2]);
            }
        }
#endif
        return volume * lambda;
    }

    static __device__ inline void cross(T (&to)[3], const T (&a)[3], const T (&b)[3]) {
        to[0] = a[1] * b[2] - a[2] * b[1];
        to[1] = a[2] * b[0] - a[0] * b[2];
        to[2] = a[0] * b[1] - a[1] * b[0];
    }
};
#endif
