// Assembly of linear elements, one thread per row:
//
//   A_ij = sum_T |T| (grad phi_i . sigma grad phi_j + mean(lambda phi_i phi_j)) + sum_F int_F c phi_i phi_j
//   b_i  = sum_T |T| mean(f phi_i) + sum_F int_F (g + c w) phi_i
//
// A row visits its cells in ascending order, then its facets; no two threads write the same entry. Each visit computes
// the whole element matrix and keeps one row of it, so that an entry and its mirror image have the same bits.
#include "element.cuh"
#include "rows.cuh"

typedef FEMTILE_OFFSET Offset;

const u32 ROWS = 128;

// Means of the coefficients over a cell, for one of its corners.
struct Means {
    SigmaMean sigma;
    // Of lambda times the corner's shape function times that of each corner.
    double mass[CORNERS];
    // Of f times the corner's shape function.
    double load;
    bool is_sound;
};

// Terms that are constant on a cell: mean(phi_a phi_b) = (1 + delta_ab) / ((d + 1)(d + 2)), mean(phi_a) = 1 / (d + 1).
__device__ inline void add_by_cell(Means& m, const Form& form, u64 cell, int tag, u32 own) {
    if (SIGMA_BY_CELL) see(m.sigma, m.is_sound, 1.0, sigma_at(form, cell, tag, 0.0, 0.0, 0.0));
    if (LAMBDA_BY_CELL) {
        const double lambda = lambda_at(form, cell, tag, 0.0, 0.0, 0.0);
        m.is_sound &= is_reaction(lambda);
#pragma unroll
        for (u32 b = 0; b < CORNERS; ++b) {
            m.mass[b] = lambda * ((b == own ? 2.0 : 1.0) / ((DIMENSION + 1.0) * (DIMENSION + 2.0)));
        }
    }
    if (SOURCE_BY_CELL) {
        const double f = source_at(form, cell, tag, 0.0, 0.0, 0.0);
        m.load = f / CORNERS;
        m.is_sound &= is_finite(f);
    }
}

// Terms averaged over the points of a rule, each with its weight and barycentric coordinates.
__device__ inline void add_by_point(
    Means& m, const Form& form, u64 cell, int tag, u32 own, const Vector (&p)[CORNERS]) {
#pragma unroll 1
    for (u32 q = 0; q < N_POINTS; ++q) {
        const double* const point = rule_point(form, q);
        const double weight = point[0];
        const Vector at = point_at(point, p);
        double at_own = point[1];
#pragma unroll
        for (u32 a = 1; a < CORNERS; ++a) at_own = a == own ? point[1 + a] : at_own;
        if (SIGMA == BY_POINT) see(m.sigma, m.is_sound, weight, sigma_at(form, cell, tag, at.x, at.y, at.z));
        if (LAMBDA == BY_POINT) {
            const double lambda = lambda_at(form, cell, tag, at.x, at.y, at.z);
            m.is_sound &= is_reaction(lambda);
#pragma unroll
            for (u32 b = 0; b < CORNERS; ++b) m.mass[b] += weight * lambda * (at_own * point[1 + b]);
        }
        if (SOURCE == BY_POINT) {
            const double f = source_at(form, cell, tag, at.x, at.y, at.z);
            m.load += weight * f * at_own;
            m.is_sound &= is_finite(f);
        }
    }
}

// Stiffness of corner `own` with each corner; the diagonal entry is minus the sum of the others.
__device__ inline void stiffness_row(
    double (&row)[CORNERS], const Vector (&g)[DIMENSION], const SigmaMean& sigma, double scale, u32 own) {
    double k[EDGES];
    stiffness_of_edges(k, g, sigma, scale);
#pragma unroll
    for (u32 a = 0; a < CORNERS; ++a) {
        if (a != own) continue;
        double others = 0.0;
#pragma unroll
        for (u32 b = 0; b < CORNERS; ++b) {
            if (b == a) continue;
            row[b] = k[edge(a, b)];
            others += row[b];
        }
        row[a] = -others;
    }
}

// The array of row sums: the values themselves if they are doubles.
__device__ inline double* sums_of(double* values, double*) {
    return values;
}

__device__ inline double* sums_of(float*, double* sums) {
    return sums;
}

// Adds the terms of all cells; values and rhs are zero before. `bad` becomes the first cell that is degenerate or has
// coefficients out of range.
extern "C" __global__ void __launch_bounds__(ROWS, 3) assembly_cells(
    T* values, double* scratch, double* rhs, u32* bad, const Offset* offsets, const u32* columns, const u32* starts,
    const u32* list, const u32* cells, const double* points, u64 n_rows, Form form) {
    const u64 row = thread_number();
    if (row >= n_rows) return;
    double* const sums = sums_of(values, scratch) + offsets[row];
    const u32* const row_columns = columns + offsets[row];
    const u32 length = (u32)(offsets[row + 1] - offsets[row]);
    double diagonal = 0.0, load = 0.0;
    for (u32 i = starts[row]; i < starts[row + 1]; ++i) {
        const u32 cell = list[i];
        u32 nodes[CORNERS], own = 0;
        Vector p[CORNERS], g[DIMENSION];
        load_cell(nodes, cells, cell);
#pragma unroll
        for (u32 a = 0; a < CORNERS; ++a) {
            const double* const point = points + 3 * (u64)nodes[a];
            p[a] = Vector{point[0], point[1], point[2]};
            if (nodes[a] == row) own = a;
        }
        const double volumes = area_vectors(g, p), factorial = DIMENSION == 3 ? 6.0 : 2.0;
        const double measure = volumes * (1.0 / factorial), scale = (1.0 / factorial) / volumes;
        Means means = {};
        means.is_sound = measure >= SMALLEST && measure <= LARGEST;
        const int tag = form.tags != 0 ? form.tags[cell] : 0;
        add_by_cell(means, form, cell, tag, own);
        if (VARIES_IN_CELLS) add_by_point(means, form, cell, tag, own, p);
        double terms[CORNERS];
        stiffness_row(terms, g, means.sigma, scale, own);
#pragma unroll
        for (u32 b = 0; b < CORNERS; ++b) {
            const double term = terms[b] + measure * means.mass[b];
            if (b == own) diagonal += term;
            else sums[position(row_columns, length, nodes[b])] += term;
        }
        load += measure * means.load;
        if (!means.is_sound) atomicMin(bad, cell);
    }
    sums[position(row_columns, length, (u32)row)] = diagonal;
    rhs[row] = load;
}

// Adds the facet terms of some rows: entries begin[k]..begin[k + 1] belong to row rows[k].
extern "C" __global__ void assembly_facets(
    T* values, double* scratch, double* rhs, const Offset* offsets, const u32* columns, const u32* rows,
    const u32* begin, const u32* entry_columns, const double* entry_values, u64 n) {
    const u64 k = thread_number();
    if (k >= n) return;
    const u32 row = rows[k];
    double* const sums = sums_of(values, scratch) + offsets[row];
    const u32* const row_columns = columns + offsets[row];
    const u32 length = (u32)(offsets[row + 1] - offsets[row]);
    for (u32 i = begin[k]; i < begin[k + 1]; ++i) {
        const u32 column = entry_columns[i];
        if (column == RIGHT_SIDE) rhs[row] += entry_values[i];
        else sums[position(row_columns, length, column)] += entry_values[i];
    }
}

// Eliminates constraints: unit rows, columns moved to the right side; then rounds.
extern "C" __global__ void assembly_finish(
    T* values, double* scratch, double* rhs, const Offset* offsets, const u32* columns, u64 n_rows, Given given) {
    const u64 row = thread_number();
    if (row >= n_rows) return;
    const double* const sums = sums_of(values, scratch);
    const bool row_is_given = is_given(given, (u32)row);
    double right = rhs[row];
    for (Offset i = offsets[row]; i < offsets[row + 1]; ++i) {
        const u32 column = columns[i];
        double value = sums[i];
        if (row_is_given) {
            value = column == row ? 1.0 : 0.0;
        } else if (is_given(given, column)) {
            right -= value * given_value(given, column);
            value = 0.0;
        }
        values[i] = (T)value;
    }
    rhs[row] = row_is_given ? 0.0 : right;
}
