// Newton's method for the implicit Euler equations of the states at given voltages, a thread a point:
//
//   w - w_old - dt g(V, w) = 0,   I = I(V, w),   dI/dV = I_V + I_w (1 - dt g_w)^-1 dt g_V
//
// as newton.rs, with the same iterations.
#include "femtile.cuh"
// STATES; OUTPUTS; ITERATIONS; TOLERANCE; ionic_right_side(out, in): g, g_w by rows, g_V, I, I_V, I_w.
#include "ionic_model.cuh"

const u32 ROWS = STATES > 0 ? STATES : 1;
const u32 JACOBIAN = STATES, BY_VOLTAGE = STATES + STATES * STATES, CURRENT = BY_VOLTAGE + STATES;

// Gauss-Jordan elimination with partial pivoting; the last two columns become the solutions.
__device__ __forceinline__ void solve(double (*a)[ROWS + 2]) {
#pragma unroll
    for (u32 column = 0; column < STATES; ++column) {
#pragma unroll
        for (u32 row = column + 1; row < STATES; ++row) {
            if (fabs(a[row][column]) > fabs(a[column][column])) {
#pragma unroll
                for (u32 j = 0; j < ROWS + 2; ++j) {
                    const double other = a[row][j];
                    a[row][j] = a[column][j];
                    a[column][j] = other;
                }
            }
        }
        const double scale = 1.0 / a[column][column];
#pragma unroll
        for (u32 j = 0; j < ROWS + 2; ++j) a[column][j] *= scale;
#pragma unroll
        for (u32 row = 0; row < STATES; ++row) {
            if (row == column) continue;
            const double factor = a[row][column];
#pragma unroll
            for (u32 j = 0; j < ROWS + 2; ++j) a[row][j] -= factor * a[column][j];
        }
    }
}

// Reads V and the old states of each point, writes its states, current and tangent.
extern "C" __global__ void ionic_implicit(
    double* states, double* current, double* tangent, u32* n_failures, const double* v, const double* old_states,
    u64 n, u64 stride, double dt) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    double in[1 + ROWS], old[ROWS], out[OUTPUTS], a[ROWS][ROWS + 2];
    in[0] = v[i];
#pragma unroll
    for (u32 k = 0; k < STATES; ++k) in[1 + k] = old[k] = old_states[k * stride + i];
    double slope = 0.0;
    bool has_converged = false;
#pragma unroll 1
    for (u32 iteration = 0; iteration <= ITERATIONS; ++iteration) {
        ionic_right_side(out, in);
#pragma unroll
        for (u32 row = 0; row < STATES; ++row) {
#pragma unroll
            for (u32 j = 0; j < STATES; ++j) a[row][j] = (row == j ? 1.0 : 0.0) - dt * out[JACOBIAN + STATES * row + j];
            a[row][ROWS] = in[1 + row] - old[row] - dt * out[row];
            a[row][ROWS + 1] = dt * out[BY_VOLTAGE + row];
        }
        solve(a);
        slope = out[CURRENT + 1];
        has_converged = true;
#pragma unroll
        for (u32 k = 0; k < STATES; ++k) {
            slope += out[CURRENT + 2 + k] * a[k][ROWS + 1];
            has_converged = has_converged && fabs(a[k][ROWS]) <= TOLERANCE * (fabs(in[1 + k]) + 1e-3);
        }
        if (has_converged || iteration == ITERATIONS) break;
#pragma unroll
        for (u32 k = 0; k < STATES; ++k) in[1 + k] -= a[k][ROWS];
    }
    current[i] = out[CURRENT];
    tangent[i] = slope;
    if (!has_converged) atomicAdd(n_failures, 1u);
#pragma unroll
    for (u32 k = 0; k < STATES; ++k) states[k * stride + i] = in[1 + k];
}
