// A form at a function on a GPU, cell by cell:
//   r = sum over cells of  B^T f(B u),   y = sum over cells of  B^T D'(B u) B w,
// where f = (f0, f1) is the integrand, and the values B u at the points that matrices are computed from.
//
// A team of threads has a cell: its threads bring the coefficients to shared memory, then each takes some points, then each some
// shape functions, which it integrates. What cells give is summed for each unknown in ascending order of the cells, so that results
// have the same bits in every run.
//
// The text of `products.cuh` gives the numbers of the element, FORM_BOUNDS, the launch bounds, and for both programs the function that collects its inputs, which
// are those that change with the state, then OF_CELL numbers of the cell and AT_POINT of the point.
#include "femtile.cuh"
#include "products.cuh"

// Shape functions and points of a cell, threads of a team, teams of a block.
const u32 NODES = FEMTILE_NODES, POINTS = FEMTILE_POINTS, TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
const u32 SLOTS = 1 + DIMENSION, GEOMETRY = DIMENSION * DIMENSION + 1;
const u32 LOCAL = NODES * COMPONENTS;
// Coefficients of u, of its rate and of the direction; fluxes of r and y at the points.
const u32 PER_TEAM = 3 * LOCAL + 2 * POINTS * VALUES;

// Degrees of freedom [cells][NODES]; inverse Jacobian by rows and weight [cells][GEOMETRY][POINTS]; shape functions and their
// derivatives [SLOTS][NODES][POINTS] and [SLOTS][POINTS][NODES].
struct Cells {
    const u32* dofs;
    const double* geometry;
    const double* at_points;
    const double* of_shapes;
    u64 n;
};

// Functions by unknowns; a null pointer is the function zero. Numbers of both programs [cells][OF_CELL], then [AT_POINT][POINTS].
struct Functions {
    const double* u;
    const double* rate;
    const double* direction;
    const double* of_residual;
    const double* of_tangent;
    double time, shift;
};

__device__ inline void bring(double* local, const double* u, const Cells& cells, u64 cell, u32 lane) {
    for (u32 a = lane; a < NODES; a += TEAM) {
        const u64 dof = __ldg(cells.dofs + cell * NODES + a);
#pragma unroll
        for (u32 c = 0; c < COMPONENTS; ++c) local[a * COMPONENTS + c] = u ? __ldg(u + dof * COMPONENTS + c) : 0.0;
    }
}

// A function at a point with its derivatives in space.
__device__ inline void evaluate(double (&values)[VALUES], const double* local, const Cells& cells, u64 cell, u32 q) {
    double along[COMPONENTS][SLOTS] = {};
#pragma unroll 4
    for (u32 a = 0; a < NODES; ++a) {
        double shape[SLOTS];
#pragma unroll
        for (u32 slot = 0; slot < SLOTS; ++slot) shape[slot] = __ldg(cells.at_points + (slot * NODES + a) * POINTS + q);
#pragma unroll
        for (u32 c = 0; c < COMPONENTS; ++c) {
            const double coefficient = local[a * COMPONENTS + c];
#pragma unroll
            for (u32 slot = 0; slot < SLOTS; ++slot) along[c][slot] += shape[slot] * coefficient;
        }
    }
    const double* const geometry = cells.geometry + cell * (GEOMETRY * POINTS) + q;
#pragma unroll
    for (u32 c = 0; c < COMPONENTS; ++c) values[c * SLOTS] = along[c][0];
#pragma unroll
    for (u32 i = 0; i < DIMENSION; ++i) {
        double inverse[DIMENSION];
#pragma unroll
        for (u32 a = 0; a < DIMENSION; ++a) inverse[a] = __ldg(geometry + (a * DIMENSION + i) * POINTS);
#pragma unroll
        for (u32 c = 0; c < COMPONENTS; ++c) {
            double sum = inverse[0] * along[c][1];
#pragma unroll
            for (u32 a = 1; a < DIMENSION; ++a) sum += inverse[a] * along[c][1 + a];
            values[c * SLOTS + 1 + i] = sum;
        }
    }
}

// Multiplies a flux by the weight and turns it to the axes of the reference cell.
__device__ inline void turn(double* flux, const double (&values)[VALUES], const Cells& cells, u64 cell, u32 q) {
    const double* const geometry = cells.geometry + cell * (GEOMETRY * POINTS) + q;
    const double weight = __ldg(geometry + (GEOMETRY - 1) * POINTS);
#pragma unroll
    for (u32 c = 0; c < COMPONENTS; ++c) flux[c * SLOTS] = weight * values[c * SLOTS];
#pragma unroll
    for (u32 a = 0; a < DIMENSION; ++a) {
        double inverse[DIMENSION];
#pragma unroll
        for (u32 i = 0; i < DIMENSION; ++i) inverse[i] = __ldg(geometry + (a * DIMENSION + i) * POINTS);
#pragma unroll
        for (u32 c = 0; c < COMPONENTS; ++c) {
            double sum = inverse[0] * values[c * SLOTS + 1];
#pragma unroll
            for (u32 i = 1; i < DIMENSION; ++i) sum += inverse[i] * values[c * SLOTS + 1 + i];
            flux[c * SLOTS + 1 + a] = weight * sum;
        }
    }
}

template <u32 OF_CELL, u32 AT_POINT>
__device__ inline void numbers(double* in, const double* all, u64 cell, u32 q) {
    const double* const own = all + cell * (OF_CELL + AT_POINT * POINTS);
#pragma unroll
    for (u32 i = 0; i < OF_CELL; ++i) in[i] = __ldg(own + i);
#pragma unroll
    for (u32 i = 0; i < AT_POINT; ++i) in[OF_CELL + i] = __ldg(own + OF_CELL + i * POINTS + q);
}

// Writes what the cells give to r and y: [2][cells][NODES][COMPONENTS].
extern "C" __global__ void __launch_bounds__(FORM_BOUNDS) form_products(double* found, Cells cells, Functions of) {
    FEMTILE_DYNAMIC_SHARED(double, memory);
    const u32 lane = threadIdx.x % TEAM;
    const u64 cell = (u64)blockIdx.x * TEAMS + threadIdx.x / TEAM;
    const bool is_cell = cell < cells.n;
    double* const local = memory + (threadIdx.x / TEAM) * PER_TEAM;
    double* const fluxes = local + 3 * LOCAL;
    if (is_cell) {
        bring(local, of.u, cells, cell, lane);
        if (READS_RATE) bring(local + LOCAL, of.rate, cells, cell, lane);
        bring(local + 2 * LOCAL, of.direction, cells, cell, lane);
    }
    __syncthreads();
    if (is_cell) {
        for (u32 q = lane; q < POINTS; q += TEAM) {
            double state[VALUES], rate[VALUES] = {}, direction[VALUES], out[VALUES];
            evaluate(state, local, cells, cell, q);
            if (READS_RATE) evaluate(rate, local + LOCAL, cells, cell, q);
            evaluate(direction, local + 2 * LOCAL, cells, cell, q);
            {
                double in[RESIDUAL_BEFORE + RESIDUAL_OF_CELL + RESIDUAL_AT_POINT + 1];
                residual_inputs(in, state, rate, direction, of.time, of.shift);
                numbers<RESIDUAL_OF_CELL, RESIDUAL_AT_POINT>(in + RESIDUAL_BEFORE, of.of_residual, cell, q);
                residual(out, in);
                turn(fluxes + q * VALUES, out, cells, cell, q);
            }
            {
                double in[TANGENT_BEFORE + TANGENT_OF_CELL + TANGENT_AT_POINT + 1];
                tangent_inputs(in, state, rate, direction, of.time, of.shift);
                numbers<TANGENT_OF_CELL, TANGENT_AT_POINT>(in + TANGENT_BEFORE, of.of_tangent, cell, q);
                tangent(out, in);
                turn(fluxes + (POINTS + q) * VALUES, out, cells, cell, q);
            }
        }
    }
    __syncthreads();
    if (!is_cell) return;
    for (u32 a = lane; a < NODES; a += TEAM) {
        double sums[2][COMPONENTS] = {};
#pragma unroll 4
        for (u32 q = 0; q < POINTS; ++q) {
            double shape[SLOTS];
#pragma unroll
            for (u32 slot = 0; slot < SLOTS; ++slot) shape[slot] = __ldg(cells.of_shapes + (slot * POINTS + q) * NODES + a);
#pragma unroll
            for (u32 product = 0; product < 2; ++product) {
                const double* const flux = fluxes + (product * POINTS + q) * VALUES;
#pragma unroll
                for (u32 c = 0; c < COMPONENTS; ++c) {
#pragma unroll
                    for (u32 slot = 0; slot < SLOTS; ++slot) sums[product][c] += shape[slot] * flux[c * SLOTS + slot];
                }
            }
        }
#pragma unroll
        for (u32 product = 0; product < 2; ++product) {
#pragma unroll
            for (u32 c = 0; c < COMPONENTS; ++c) {
                found[((product * cells.n + cell) * NODES + a) * COMPONENTS + c] = sums[product][c];
            }
        }
    }
}

// Adds to r and y what the cells give to each degree of freedom, at the places from begins[i] to begins[i + 1].
extern "C" __global__ void form_sums(double* r, double* y, const double* found, const u32* begins, const u32* places, u64 n_dofs,
                                     u64 n_cells) {
    const u64 dof = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (dof >= n_dofs) return;
    double sums[2][COMPONENTS] = {};
    for (u32 k = begins[dof]; k < begins[dof + 1]; ++k) {
        const u64 place = places[k];
#pragma unroll
        for (u32 product = 0; product < 2; ++product) {
#pragma unroll
            for (u32 c = 0; c < COMPONENTS; ++c) {
                sums[product][c] += found[(product * n_cells * NODES + place) * COMPONENTS + c];
            }
        }
    }
#pragma unroll
    for (u32 c = 0; c < COMPONENTS; ++c) {
        r[dof * COMPONENTS + c] += sums[0][c];
        y[dof * COMPONENTS + c] += sums[1][c];
    }
}

// Writes u, then its rate if a matrix is computed from it, at the points: [cells][1 or 2][VALUES][POINTS].
extern "C" __global__ void __launch_bounds__(TEAM * TEAMS) form_states(double* states, Cells cells, Functions of) {
    FEMTILE_DYNAMIC_SHARED(double, memory);
    const u32 fields = READS_RATE ? 2 : 1;
    const u32 lane = threadIdx.x % TEAM;
    const u64 cell = (u64)blockIdx.x * TEAMS + threadIdx.x / TEAM;
    const bool is_cell = cell < cells.n;
    double* const local = memory + (threadIdx.x / TEAM) * PER_TEAM;
    if (is_cell) {
        bring(local, of.u, cells, cell, lane);
        if (READS_RATE) bring(local + LOCAL, of.rate, cells, cell, lane);
    }
    __syncthreads();
    if (!is_cell) return;
    for (u32 q = lane; q < POINTS; q += TEAM) {
#pragma unroll
        for (u32 field = 0; field < fields; ++field) {
            double values[VALUES];
            evaluate(values, local + field * LOCAL, cells, cell, q);
            double* const to = states + (cell * fields + field) * (VALUES * POINTS) + q;
#pragma unroll
            for (u32 i = 0; i < VALUES; ++i) to[i * POINTS] = values[i];
        }
    }
}
