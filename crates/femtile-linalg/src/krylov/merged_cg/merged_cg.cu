// Merged conjugate gradients on a GPU beside their products, which sum p.v: the updates before one, six sums after it, the
// step between two, and what x has not taken at the end. A block takes a tile.
#include "femtile.cuh"
#include "sums.cuh"
#include "state.cuh"

// Rows of a thread.
const u32 ROWS = TILE / SUM_THREADS;
// Places in `steps`.
const u32 OF_P = 0, OF_LATE = 1, IS_DUE = 2;
// r.r, r.v, v.v, r.D^-1 r, r.D^-1 v, v.D^-1 v; behind them p.v.
const u32 N_SUMS = 6;

// The diagonal, an entry of which stands for some rows.
struct Diagonal {
    const T* inverse;
    u64 n_rows;
    __device__ inline T at(u64 row) const { return inverse[n_rows == 1 ? row : row / n_rows]; }
};

__device__ inline u64 tile_row(u32 k) { return (u64)blockIdx.x * TILE + k * SUM_THREADS + threadIdx.x; }

// r -= alpha v, p = D^-1 r + beta p, and x takes its steps where they are due. Reads v, r, p, d, writes r, p; x.
extern "C" __global__ void merged_cg_update(
    T* x, T* r, T* p, const T* v, Diagonal diagonal, const double* state, const double* steps, u64 n) {
    if (state[END] != RUNNING) return;
    const T alpha = (T)state[ALPHA], beta = (T)state[BETA], of_p = (T)steps[OF_P], of_late = (T)steps[OF_LATE];
    const bool is_due = steps[IS_DUE] != 0.0;
    T of_x[ROWS] = {}, of_r[ROWS] = {}, before[ROWS] = {}, of_v[ROWS] = {}, of_d[ROWS] = {};
#pragma unroll
    for (u32 k = 0; k < ROWS; ++k) {
        const u64 row = tile_row(k);
        if (row >= n) continue;
        of_r[k] = r[row];
        before[k] = p[row];
        of_v[k] = v[row];
        of_d[k] = diagonal.at(row);
        if (is_due) of_x[k] = x[row];
    }
#pragma unroll
    for (u32 k = 0; k < ROWS; ++k) {
        const u64 row = tile_row(k);
        if (row >= n) continue;
        if (is_due) x[row] = of_x[k] + (of_p * before[k] + of_late * (before[k] - of_d[k] * of_r[k]));
        const T residual = of_r[k] - alpha * of_v[k];
        r[row] = residual;
        p[row] = of_d[k] * residual + beta * before[k];
    }
}

// The sums after a product. Reads r, v, d.
extern "C" __global__ void merged_cg_sums(
    double* addends, double* partials, u32* counters, const T* r, const T* v, Diagonal diagonal, const double* state,
    u64 n) {
    if (state[END] != RUNNING) return;
    double sums[N_SUMS] = {};
#pragma unroll
    for (u32 k = 0; k < ROWS; ++k) {
        const u64 row = tile_row(k);
        if (row >= n) continue;
        const double of_r = r[row], of_v = v[row], d = diagonal.at(row);
        sums[0] += of_r * of_r;
        sums[1] += of_r * of_v;
        sums[2] += of_v * of_v;
        sums[3] += of_r * (d * of_r);
        sums[4] += of_r * (d * of_v);
        sums[5] += of_v * (d * of_v);
    }
    leave_addends(addends, partials, counters, sums);
}

// Below this, relative to its parts, a predicted sum may be all rounding.
__device__ inline double rounding() { return 64.0 * (sizeof(T) == 8 ? 2.220446049250313e-16 : 1.1920928955078125e-7); }

// s - 2 alpha t + alpha^2 u, the square of a difference, or a negative number where it is lost to rounding.
__device__ inline double predicted(double s, double t, double u, double alpha) {
    const double difference = s - 2.0 * alpha * t + alpha * alpha * u, size = s + alpha * alpha * u;
    return difference > rounding() * size ? difference : -1.0;
}

__device__ inline double reason_to_end(double r_dot_r, double p_dot_v, double r_dot_z, double threshold) {
    if (!is_finite(r_dot_r)) return BAD_R_DOT_R;
    if (r_dot_r <= threshold) return CONVERGED;
    if (!is_positive(r_dot_z)) return BAD_R_DOT_Z;
    return is_positive(p_dot_v) ? RUNNING : BAD_P_DOT_Q;
}

// alpha, beta and what x is to take, from the sums; ends the method where there is reason to. One warp.
extern "C" __global__ void merged_cg_step(
    double* state, double* steps, double* p_dot_q, double* r_sums, const double* addends) {
    double sums[N_SUMS];
#pragma unroll
    for (u32 s = 0; s < N_SUMS; ++s) sums[s] = sum_addends(addends + s * ADDENDS);
    const double p_dot_v = sum_addends(addends + N_SUMS * ADDENDS);
    if (threadIdx.x > 0 || state[END] != RUNNING) return;
    const double r_dot_r = sums[0], r_dot_z = sums[3];
    p_dot_q[0] = p_dot_v;
    r_sums[0] = r_dot_r;
    r_sums[ADDENDS] = r_dot_z;
    // The step of the iteration before, unless x has taken it already.
    const bool has_waited = steps[IS_DUE] == 0.0 && state[ITERATION] > 0.0;
    const double late = has_waited ? state[ALPHA] / state[BETA] : 0.0;
    steps[OF_P] = 0.0;
    steps[OF_LATE] = late;
    steps[IS_DUE] = 1.0;
    const double end = reason_to_end(r_dot_r, p_dot_v, r_dot_z, state[THRESHOLD]);
    if (end != RUNNING) {
        state[END] = end;
        return;
    }
    const double alpha = r_dot_z / p_dot_v;
    const double next = predicted(r_dot_r, sums[1], sums[2], alpha), next_z = predicted(r_dot_z, sums[4], sums[5], alpha);
    const double beta = next_z > 0.0 ? next_z / r_dot_z : 0.0;
    const double iteration = state[ITERATION] + 1.0;
    state[ITERATION] = iteration;
    keep(state, iteration, next > 0.0 ? next : rounding() * r_dot_r, r_dot_z, alpha);
    if (next > 0.0 && next <= state[THRESHOLD]) {
        state[END] = CONVERGED;
    } else if (iteration >= state[LIMIT]) {
        state[END] = LIMIT_REACHED;
    }
    state[ALPHA] = alpha;
    state[BETA] = beta;
    steps[OF_P] = alpha;
    steps[IS_DUE] = late == 0.0 && beta >= FEMTILE_LEAST_BETA ? 0.0 : 1.0;
}

// x takes the steps that it has not taken, once the method has ended.
extern "C" __global__ void merged_cg_finish(T* x, const T* r, const T* p, Diagonal diagonal, const double* steps, u64 n) {
    const T of_p = (T)steps[OF_P], of_late = (T)steps[OF_LATE];
    if (of_p == (T)0 && of_late == (T)0) return;
#pragma unroll
    for (u32 k = 0; k < ROWS; ++k) {
        const u64 row = tile_row(k);
        if (row < n) x[row] += of_p * p[row] + of_late * (p[row] - diagonal.at(row) * r[row]);
    }
}
