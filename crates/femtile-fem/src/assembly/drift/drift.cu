// Adds the drift of a linearization to a matrix in compressed sparse rows, one thread per row:
//
//   D_ij = sum_T |T| grad phi_i . mean(sigma_u phi_j) grad u,    b_i += sum_j D_ij u_j.
//
// A row visits its cells in ascending order; no two threads write the same entry. Rows and columns of constrained unknowns
// are left as they are, with their values moved to the right side.
#include "element.cuh"
#include "rows.cuh"

// Means of the derivative of the conductivity times each shape function.
struct Moments {
    SlopeMean values[CORNERS];
    bool is_sound;
};

__device__ inline Moments moments_of(
    const Form& form, u64 cell, const Vector (&p)[CORNERS], const double (&u)[CORNERS]) {
    const int tag = form.tags != 0 ? form.tags[cell] : 0;
    Moments found = {};
    found.is_sound = true;
#pragma unroll 1
    for (u32 q = 0; q < N_POINTS; ++q) {
        const double* const point = rule_point(form, q);
        const Vector at = point_at(point, p);
        const auto slope = sigma_slope_at(form, cell, tag, at.x, at.y, at.z, value_at(point, u));
        found.is_sound &= is_all_finite(slope);
#pragma unroll
        for (u32 b = 0; b < CORNERS; ++b) add(found.values[b], point[0] * point[1 + b], slope);
    }
    return found;
}

// Vectors with the directions of the gradients of the shape functions.
__device__ inline void all_area_vectors(Vector (&all)[CORNERS], const Vector (&g)[DIMENSION]) {
    all[0] = Vector{0.0, 0.0, 0.0};
#pragma unroll
    for (u32 a = 0; a < DIMENSION; ++a) {
        all[1 + a] = g[a];
        all[0] = all[0] - g[a];
    }
}

typedef FEMTILE_V V;

extern "C" __global__ void assembly_drift(
    V* values, T* rhs, u32* bad, const u64* offsets, const u32* columns, const u64* starts, const u32* list,
    const u32* cells, const double* points, u64 n_rows, Given given, Form form) {
    const u64 row = thread_number();
    if (row >= n_rows || (given.mask != 0 && is_given(given, (u32)row))) return;
    V* const entries = values + offsets[row];
    const u32* const row_columns = columns + offsets[row];
    const u32 length = (u32)(offsets[row + 1] - offsets[row]);
    double right = 0.0;
    for (u64 i = starts[row]; i < starts[row + 1]; ++i) {
        const u32 cell = list[i];
        u32 nodes[CORNERS], own = 0;
        Vector p[CORNERS], g[DIMENSION], all[CORNERS];
        double u[CORNERS];
        load_cell(nodes, cells, cell);
#pragma unroll
        for (u32 a = 0; a < CORNERS; ++a) {
            const double* const point = points + 3 * (u64)nodes[a];
            p[a] = Vector{point[0], point[1], point[2]};
            u[a] = unknown_at(form, nodes[a]);
            if (nodes[a] == row) own = a;
        }
        const double volumes = area_vectors(g, p), factorial = DIMENSION == 3 ? 6.0 : 2.0;
        const double scale = (1.0 / factorial) / volumes;
        all_area_vectors(all, g);
        Vector slope = {0.0, 0.0, 0.0}, test = all[0];
#pragma unroll
        for (u32 a = 0; a < CORNERS; ++a) {
            slope.x += u[a] * all[a].x;
            slope.y += u[a] * all[a].y;
            slope.z += u[a] * all[a].z;
            if (a == own) test = all[a];
        }
        const Moments moments = moments_of(form, cell, p, u);
        if (!moments.is_sound) atomicMin(bad, cell);
#pragma unroll
        for (u32 b = 0; b < CORNERS; ++b) {
            const double term = scale * dot(test, moments.values[b] * slope);
            right += term * u[b];
            if (given.mask != 0 && is_given(given, nodes[b])) right -= term * given_value(given, nodes[b]);
            else entries[position(row_columns, length, nodes[b])] += (V)term;
        }
    }
    rhs[row] += (T)right;
}
