// The passes of conjugate gradients between two products. A block takes a tile.
//
// Step length and conjugation have no kernel of their own: every block works them out from the sums, and the first
// block of the second pass moves the state on. So an iteration is three kernels.
#include "femtile.cuh"
#include "sums.cuh"
#include "state.cuh"

// alpha = rho / p.q, or 0 where p.q breaks the method down.
__device__ inline double step_length(double rho, double p_dot_q) {
    return is_positive(p_dot_q) ? rho / p_dot_q : 0.0;
}

// beta = r.z / rho, or -alpha q.z / rho = z.(r - r before) / rho, which allows for a preconditioner that changes.
__device__ inline double conjugation(double rho, double p_dot_q, double r_dot_z, double q_dot_z) {
    return (FEMTILE_FLEXIBLE ? -step_length(rho, p_dot_q) * q_dot_z : r_dot_z) / rho;
}

// r -= alpha q; r_sums = (r.r, r.D^-1 r), without the second where there is no diagonal.
// Reads r, q, d, writes r. Vectors are asked for before the state is looked at, so that the two waits are one.
extern "C" __global__ void cg_residual(
    T* r, double* r_sums, double* partials, u32* counters, const T* q, const T* d, const double* p_addends,
    const double* state, u64 n) {
    const double* current = state + CURRENT;
    const u64 tail = tail_entry(n);
    Pack<T> read_r[TILE_PACKS], read_q[TILE_PACKS], read_d[TILE_PACKS];
    load_tile(read_r, r, blockIdx.x, n);
    load_tile(read_q, q, blockIdx.x, n);
    if (FEMTILE_DIAGONAL) load_tile(read_d, d, blockIdx.x, n);
    const double p_dot_q = sum_addends(p_addends);
    if (current[END] != RUNNING || !is_positive(p_dot_q)) return;
    const T alpha = (T)step_length(current[RHO], p_dot_q);
    double sums[1 + FEMTILE_DIAGONAL] = {};
    for (u32 k = 0; k < TILE_PACKS; ++k) {
        for (u32 j = 0; j < Pack<T>::N; ++j) {
            const T value = read_r[k].value[j] - alpha * read_q[k].value[j];
            read_r[k].value[j] = value;
            sums[0] += (double)value * (double)value;
            if (FEMTILE_DIAGONAL) {
                sums[FEMTILE_DIAGONAL] += (double)value * ((double)read_d[k].value[j] * (double)value);
            }
        }
    }
    store_tile(r, read_r, blockIdx.x, n);
    if (tail < n) {
        const T value = r[tail] - alpha * q[tail];
        r[tail] = value;
        sums[0] += (double)value * (double)value;
        if (FEMTILE_DIAGONAL) sums[FEMTILE_DIAGONAL] += (double)value * ((double)d[tail] * (double)value);
    }
    leave_addends(r_sums, partials, counters, sums);
}

// Moves the state to the next iteration, or ends the method.
__device__ inline void conjugate(
    double* state, const double* current, double p_dot_q, double r_dot_r, double r_dot_z, double beta) {
    if (!is_positive(p_dot_q)) {
        state[END] = BAD_P_DOT_Q;
        return;
    }
    if (!is_finite(r_dot_r)) {
        state[END] = BAD_R_DOT_R;
        return;
    }
    const double iteration = current[ITERATION] + 1.0;
    state[ITERATION] = iteration;
    const double alpha = step_length(current[RHO], p_dot_q);
    keep(state, iteration, r_dot_r, current[RHO], alpha);
    if (r_dot_r <= current[THRESHOLD]) {
        state[END] = CONVERGED;
    } else if (!is_positive(r_dot_z)) {
        state[END] = BAD_R_DOT_Z;
    } else if (iteration >= current[LIMIT]) {
        state[END] = LIMIT_REACHED;
    }
    state[ALPHA] = alpha;
    state[BETA] = beta;
    state[RHO] = r_dot_z;
}

// x += alpha p, then p = D^-1 z + beta p (p = z + beta p without a diagonal), with alpha and beta of this
// iteration; the first block moves the state on. Reads x, p, z, d, writes x, p.
extern "C" __global__ void cg_direction(
    T* p, T* x, double* state, const T* z, const T* d, const double* p_addends, const double* r_sums, u64 n) {
    const double* current = state + CURRENT;
    const u64 tail = tail_entry(n);
    Pack<T> read_p[TILE_PACKS], read_x[TILE_PACKS], read_z[TILE_PACKS], read_d[TILE_PACKS];
    load_tile(read_p, p, blockIdx.x, n);
    load_tile(read_x, x, blockIdx.x, n);
    load_tile(read_z, z, blockIdx.x, n);
    if (FEMTILE_DIAGONAL) load_tile(read_d, d, blockIdx.x, n);
    const double p_dot_q = sum_addends(p_addends);
    const double r_dot_r = sum_addends(r_sums), r_dot_z = sum_addends(r_sums + ADDENDS);
    const double q_dot_z = FEMTILE_FLEXIBLE ? sum_addends(r_sums + 2 * ADDENDS) : 0.0;
    if (current[END] != RUNNING) return;
    const double exact_beta = conjugation(current[RHO], p_dot_q, r_dot_z, q_dot_z);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        conjugate(state, current, p_dot_q, r_dot_r, r_dot_z, exact_beta);
    }
    if (is_positive(p_dot_q) && is_finite(r_dot_r)) {
        const T alpha = (T)step_length(current[RHO], p_dot_q), beta = (T)exact_beta;
        for (u32 k = 0; k < TILE_PACKS; ++k) {
            for (u32 j = 0; j < Pack<T>::N; ++j) {
                const T z_j = FEMTILE_DIAGONAL ? read_d[k].value[j] * read_z[k].value[j] : read_z[k].value[j];
                read_x[k].value[j] += alpha * read_p[k].value[j];
                read_p[k].value[j] = z_j + beta * read_p[k].value[j];
            }
        }
        store_tile(x, read_x, blockIdx.x, n);
        store_tile(p, read_p, blockIdx.x, n);
        if (tail < n) {
            const T z_i = FEMTILE_DIAGONAL ? d[tail] * z[tail] : z[tail];
            const T p_i = p[tail];
            x[tail] += alpha * p_i;
            p[tail] = z_i + beta * p_i;
        }
    }
}

// rho = r.z before the first iteration; ends the method unless it is positive. One warp.
extern "C" __global__ void cg_start(double* state, const double* r_sums) {
    const double r_dot_z = sum_addends(r_sums + ADDENDS);
    if (threadIdx.x == 0) {
        state[RHO] = r_dot_z;
        if (!is_positive(r_dot_z)) state[END] = BAD_R_DOT_Z;
    }
}
