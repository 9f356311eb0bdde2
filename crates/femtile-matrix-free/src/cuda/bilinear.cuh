// The metric of a bilinear quadrilateral, computed from its four corners and its coefficients: [corner][2], sigma as xx, yy, xy,
// and lambda.
#pragma once
#include "lines.cuh"
#include "reciprocal.cuh"

// The map of a bilinear cell along a column of points: the slope along y is constant, that along x is linear.
struct Metric {
    T start[2], change[2], along_y[2];
    T sigma[3], lambda, weight;
    AtPoints coefficients;

    __device__ inline Metric(const T* of_cell, u32 x, u32, bool is_active)
        : weight(WEIGHTS[x]), coefficients(of_cell, x, 0, is_active) {
#pragma unroll
        for (u32 d = 0; d < 2; ++d) {
            const T* const corner = of_cell + d;
            const T c00 = __ldg(corner), c10 = __ldg(corner + 2), c01 = __ldg(corner + 4), c11 = __ldg(corner + 6);
            start[d] = c10 - c00;
            change[d] = (c11 - c01) - (c10 - c00);
            along_y[d] = (c01 - c00) + NODES[x] * change[d];
        }
#pragma unroll
        for (u32 e = 0; e < (FEMTILE_ISOTROPIC ? 1 : 3); ++e) sigma[e] = __ldg(of_cell + 8 + e);
        lambda = __ldg(of_cell + 11);
    }

    __device__ inline T act(T (&g)[TOGETHER][2], u32 row) const {
        T along_x[2];
#pragma unroll
        for (u32 d = 0; d < 2; ++d) along_x[d] = start[d] + NODES[row] * change[d];
        const T determinant = along_x[0] * along_y[1] - along_x[1] * along_y[0];
        const T size = determinant < 0 ? -determinant : determinant;
        const T w = weight * WEIGHTS[row];
#if FEMTILE_STIFFNESS
        // |det| / det^2 = 1 / |det|, with the adjugate in place of J^-1.
        T scale = w * reciprocal(size);
        if (FEMTILE_ISOTROPIC) scale *= FEMTILE_AT_POINTS ? coefficients.sigma(row) : sigma[0];
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
            T flux[2] = {along_y[1] * g[c][0] - along_x[1] * g[c][1], along_x[0] * g[c][1] - along_y[0] * g[c][0]};
            if (!FEMTILE_ISOTROPIC) multiply(flux, sigma);
            g[c][0] = scale * (along_y[1] * flux[0] - along_y[0] * flux[1]);
            g[c][1] = scale * (along_x[0] * flux[1] - along_x[1] * flux[0]);
        }
#endif
        return w * size * (FEMTILE_AT_POINTS ? coefficients.lambda(row) : lambda);
    }
};
