// The metric of a trilinear hexahedron, computed from its eight corners and its coefficients.
#pragma once
#include "lines.cuh"
#include "reciprocal.cuh"

// The map of a trilinear cell along a column of points: x = a + z b, with slopes of a and b along x and y.
struct Metric {
    T a[2][3], b[3][3];
    T sigma[6], lambda, weight;
    AtPoints coefficients;

    __device__ inline Metric(const T* of_cell, u32 x, u32 y, bool is_active)
        : weight(column_weight(x, y)), coefficients(of_cell, x, y, is_active) {
        const T* const given = of_cell;
        const T s = NODES[x], t = NODES[y];
#pragma unroll
        for (u32 d = 0; d < 3; ++d) {
            T low[2], high[2];
#pragma unroll
            for (u32 z = 0; z < 2; ++z) {
                const T* const layer = given + 12 * z + d;
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
        if (FEMTILE_ISOTROPIC) scale *= FEMTILE_AT_POINTS ? coefficients.sigma(plane) : sigma[0];
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
            T flux[3];
#pragma unroll
            for (u32 d = 0; d < 3; ++d) flux[d] = rows[0][d] * g[c][0] + rows[1][d] * g[c][1] + rows[2][d] * g[c][2];
            if (!FEMTILE_ISOTROPIC) {
                multiply(flux, sigma);
            }
#pragma unroll
            for (u32 axis = 0; axis < 3; ++axis) {
                g[c][axis] = scale * (rows[axis][0] * flux[0] + rows[axis][1] * flux[1] + rows[axis][2] * flux[2]);
            }
        }
#endif
        return volume * (FEMTILE_AT_POINTS ? coefficients.lambda(plane) : lambda);
    }

    static __device__ inline void cross(T (&to)[3], const T (&a)[3], const T (&b)[3]) {
        to[0] = a[1] * b[2] - a[2] * b[1];
        to[1] = a[2] * b[0] - a[0] * b[2];
        to[2] = a[0] * b[1] - a[1] * b[0];
    }
};
