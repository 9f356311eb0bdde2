// Values of the matrix of a form,
//   K = sum over cells of  B^T D' B,
// without facets: the entry of rows a and b of a cell is the sum over its points of w D' between their shape functions.
//
// A team of threads has the rows of a degree of freedom, one for each component. It visits the cells of the degree of freedom in
// ascending order, a thread computes the blocks of some other shape functions of the cell and adds them: so sums have a fixed
// order without atomics. No block of a cell is computed twice.
//
// The text of `derivative.cuh` gives derivative(out, in), the entries of D', and add_block, their products with a test and a trial
// function; `in` has what changes with the state, then DERIVATIVE_OF_CELL numbers of the cell, then DERIVATIVE_AT_POINT of the point.
#include "femtile.cuh"
#include "derivative.cuh"

// Shape functions and points of a cell, threads of a team, teams of a block.
const u32 NODES = FEMTILE_NODES, POINTS = FEMTILE_POINTS, TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
const u32 SLOTS = 1 + DIMENSION, GEOMETRY = DIMENSION * DIMENSION + 1, NUMBERS = DERIVATIVE_OF_CELL + DERIVATIVE_AT_POINT * POINTS;

// Degrees of freedom [cells][NODES]; inverse Jacobian by rows and weight [cells][GEOMETRY][POINTS]; numbers of D' of the cell, then
// at the points; shape functions and their derivatives [SLOTS][POINTS][NODES]; `fields` functions at the points, u and its rate,
// [cells][fields][VALUES][POINTS].
struct Cells {
    const u32* dofs;
    const double* geometry;
    const double* numbers;
    const double* tables;
    const double* states;
    u64 fields;
    double time, shift;
};

// The places in Cells::dofs of each degree of freedom, from begins[i] to begins[i + 1], at most `most`; the pattern of the matrix.
struct Rows {
    const u32* begins;
    const u32* places;
    const u64* offsets;
    const u32* columns;
    u64 n_dofs, most;
};

// A shape function at a point with its derivatives along the axes of space.
struct Shape {
    double slots[SLOTS];

    __device__ inline Shape(const double* tables, const double (&inverse)[DIMENSION][DIMENSION], u32 node, u32 point) {
        const double* const entry = tables + point * NODES + node;
        slots[0] = __ldg(entry);
        double along[DIMENSION];
#pragma unroll
        for (u32 d = 0; d < DIMENSION; ++d) along[d] = __ldg(entry + (1 + d) * POINTS * NODES);
#pragma unroll
        for (u32 i = 0; i < DIMENSION; ++i) {
            double sum = inverse[0][i] * along[0];
#pragma unroll
            for (u32 a = 1; a < DIMENSION; ++a) sum += inverse[a][i] * along[a];
            slots[1 + i] = sum;
        }
    }
};

// The block of two shape functions of a cell.
__device__ inline void compute_block(double (&block)[COMPONENTS][COMPONENTS], const Cells& cells, u64 cell, u32 test, u32 trial) {
    const double* const geometry = cells.geometry + cell * (GEOMETRY * POINTS);
    const double* const numbers = cells.numbers + cell * NUMBERS;
#pragma unroll 1
    for (u32 q = 0; q < POINTS; ++q) {
        double inverse[DIMENSION][DIMENSION], entries[ENTRIES];
        double in[DERIVATIVE_BEFORE + DERIVATIVE_OF_CELL + DERIVATIVE_AT_POINT + 1];
#pragma unroll
        for (u32 a = 0; a < DIMENSION; ++a) {
#pragma unroll
            for (u32 i = 0; i < DIMENSION; ++i) inverse[a][i] = __ldg(geometry + (a * DIMENSION + i) * POINTS + q);
        }
        const double weight = __ldg(geometry + (GEOMETRY - 1) * POINTS + q);
        derivative_inputs(in, cells.states + cell * (cells.fields * VALUES * POINTS) + q, POINTS, cells.time, cells.shift);
        double* const own = in + DERIVATIVE_BEFORE;
#pragma unroll
        for (u32 i = 0; i < DERIVATIVE_OF_CELL; ++i) own[i] = __ldg(numbers + i);
#pragma unroll
        for (u32 i = 0; i < DERIVATIVE_AT_POINT; ++i) {
            own[DERIVATIVE_OF_CELL + i] = __ldg(numbers + DERIVATIVE_OF_CELL + i * POINTS + q);
        }
        derivative(entries, in);
        Shape of_test(cells.tables, inverse, test, q);
        const Shape of_trial(cells.tables, inverse, trial, q);
#pragma unroll
        for (u32 slot = 0; slot < SLOTS; ++slot) of_test.slots[slot] *= weight;
        add_block(block, entries, of_test.slots, of_trial.slots);
    }
}

// Adds a block to the rows of one degree of freedom and the columns of another, as far as they are in the pattern.
__device__ inline void add_to_rows(
    double* values, const double (&block)[COMPONENTS][COMPONENTS], const Rows& rows, u64 of_row, u32 of_column) {
#pragma unroll
    for (u32 c = 0; c < COMPONENTS; ++c) {
        const u64 row = of_row * COMPONENTS + c, end = rows.offsets[row + 1];
        const u32 first = of_column * COMPONENTS;
        u64 low = rows.offsets[row], high = end;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            if (__ldg(rows.columns + middle) < first) low = middle + 1;
            else high = middle;
        }
#pragma unroll
        for (u32 other = 0; other < COMPONENTS; ++other) {
            if (low < end && __ldg(rows.columns + low) == first + other) values[low++] += block[c][other];
        }
    }
}

// Adds to `values`, which begin as zeros or with the integrals before.
extern "C" __global__ void __launch_bounds__(TEAM * TEAMS) form_matrix(double* values, Cells cells, Rows rows) {
    const u32 lane = threadIdx.x % TEAM;
    const u64 dof = (u64)blockIdx.x * TEAMS + threadIdx.x / TEAM;
    const bool is_row = dof < rows.n_dofs;
    const u32 begin = is_row ? rows.begins[dof] : 0, end = is_row ? rows.begins[dof + 1] : 0;
    for (u32 k = 0; k < (u32)rows.most; ++k) {
        if (k < end - begin) {
            const u32 place = rows.places[begin + k];
            const u64 cell = place / NODES;
            for (u32 trial = lane; trial < NODES; trial += TEAM) {
                double block[COMPONENTS][COMPONENTS] = {};
                compute_block(block, cells, cell, place % NODES, trial);
                add_to_rows(values, block, rows, dof, __ldg(cells.dofs + cell * NODES + trial));
            }
        }
        // The next cell may have the same columns for other threads.
        __syncthreads();
    }
}
