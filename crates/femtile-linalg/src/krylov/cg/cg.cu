// The passes of conjugate gradients between two products. A block takes BLOCK entries.
//
// Step length and conjugation have no kernel of their own: every block works them out from the sums, and the last
// block of the second pass to finish, when all have read the state, moves it on. So an iteration is three kernels.
#include "femtile.cuh"
#include "sums.cuh"
#include "state.cuh"

// alpha = rho / p.q, or 0 where p.q breaks the method down.
__device__ inline double step_length(const double* state, const double* p_dot_q) {
    return is_positive(*p_dot_q) ? state[RHO] / *p_dot_q : 0.0;
}

// r -= alpha q; r_sums = (r.r, r.D^-1 r), without the second where there is no diagonal.
// Reads r, q, d, writes r.
extern "C" __global__ void cg_residual(
    T* r, double* r_sums, double* partials, u32* counter, const T* q, const T* d, const double* p_dot_q,
    const double* state, u64 n) {
    if (state[END] != RUNNING || !is_positive(*p_dot_q)) return;
    const T alpha = (T)step_length(state, p_dot_q);
    double r_dot_r = 0.0, r_dot_z = 0.0;
    if (block_is_whole(n)) {
        Pack<T> read_r[BLOCK_PACKS], read_q[BLOCK_PACKS], read_d[BLOCK_PACKS];
        for (u32 k = 0; k < BLOCK_PACKS; ++k) {
            read_r[k] = load_pack(r, block_pack(k));
            read_q[k] = load_pack(q, block_pack(k));
            if (FEMTILE_DIAGONAL) read_d[k] = load_pack(d, block_pack(k));
        }
        for (u32 k = 0; k < BLOCK_PACKS; ++k) {
            for (u32 j = 0; j < Pack<T>::N; ++j) {
                const T value = read_r[k].value[j] - alpha * read_q[k].value[j];
                read_r[k].value[j] = value;
                r_dot_r += (double)value * (double)value;
                if (FEMTILE_DIAGONAL) r_dot_z += (double)value * ((double)read_d[k].value[j] * (double)value);
            }
            store_pack(r, block_pack(k), read_r[k]);
        }
    } else {
        for (u64 i = block_entry(); i < n; i += blockDim.x) {
            const T value = r[i] - alpha * q[i];
            r[i] = value;
            r_dot_r += (double)value * (double)value;
            if (FEMTILE_DIAGONAL) r_dot_z += (double)value * ((double)d[i] * (double)value);
        }
    }
    double* partials_z = partials + gridDim.x;
    r_dot_r = block_sum(r_dot_r);
    if (FEMTILE_DIAGONAL) r_dot_z = block_sum(r_dot_z);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = r_dot_r;
        if (FEMTILE_DIAGONAL) partials_z[blockIdx.x] = r_dot_z;
    }
    if (is_last_block(counter)) {
        r_dot_r = sum_partials(partials, gridDim.x);
        if (FEMTILE_DIAGONAL) r_dot_z = sum_partials(partials_z, gridDim.x);
        if (threadIdx.x == 0) {
            r_sums[0] = r_dot_r;
            if (FEMTILE_DIAGONAL) r_sums[1] = r_dot_z;
        }
    }
}

// Moves the state to the next iteration, or ends the method; one thread, when all blocks have read the state.
__device__ inline void conjugate(double* state, const double* p_dot_q, const double* r_sums) {
    const double r_dot_r = r_sums[0], r_dot_z = r_sums[1];
    if (!is_positive(*p_dot_q)) {
        state[END] = BAD_P_DOT_Q;
        return;
    }
    if (!is_finite(r_dot_r)) {
        state[END] = BAD_R_DOT_R;
        return;
    }
    const double iteration = state[ITERATION] + 1.0;
    state[ITERATION] = iteration;
    state[RING_START + (u32)iteration % RING] = r_dot_r;
    if (r_dot_r <= state[THRESHOLD]) {
        state[END] = CONVERGED;
    } else if (!is_positive(r_dot_z)) {
        state[END] = BAD_R_DOT_Z;
    } else if (iteration >= state[LIMIT]) {
        state[END] = LIMIT_REACHED;
    }
    state[ALPHA] = step_length(state, p_dot_q);
    state[BETA] = r_dot_z / state[RHO];
    state[RHO] = r_dot_z;
}

// x += alpha p, then p = D^-1 z + beta p (p = z + beta p without a diagonal), with alpha and beta of this
// iteration; then the state moves on. Reads x, p, z, d, writes x, p.
extern "C" __global__ void cg_direction(
    T* p, T* x, double* state, u32* counter, const T* z, const T* d, const double* p_dot_q, const double* r_sums,
    u64 n) {
    if (state[END] != RUNNING) return;
    if (is_positive(*p_dot_q) && is_finite(r_sums[0])) {
        const T alpha = (T)step_length(state, p_dot_q), beta = (T)(r_sums[1] / state[RHO]);
        if (block_is_whole(n)) {
            for (u32 half = 0; half < 2; ++half) {
                const u32 PACKS = BLOCK_PACKS / 2;
                Pack<T> read_x[PACKS], read_p[PACKS], read_z[PACKS], read_d[PACKS];
                for (u32 k = 0; k < PACKS; ++k) {
                    const u64 pack = block_pack(half * PACKS + k);
                    read_p[k] = load_pack(p, pack);
                    read_x[k] = load_pack(x, pack);
                    read_z[k] = load_pack(z, pack);
                    if (FEMTILE_DIAGONAL) read_d[k] = load_pack(d, pack);
                }
                for (u32 k = 0; k < PACKS; ++k) {
                    const u64 pack = block_pack(half * PACKS + k);
                    for (u32 j = 0; j < Pack<T>::N; ++j) {
                        const T z_j = FEMTILE_DIAGONAL ? read_d[k].value[j] * read_z[k].value[j] : read_z[k].value[j];
                        read_x[k].value[j] += alpha * read_p[k].value[j];
                        read_p[k].value[j] = z_j + beta * read_p[k].value[j];
                    }
                    store_pack(x, pack, read_x[k]);
                    store_pack(p, pack, read_p[k]);
                }
            }
        } else {
            for (u64 i = block_entry(); i < n; i += blockDim.x) {
                const T z_i = FEMTILE_DIAGONAL ? d[i] * z[i] : z[i];
                const T p_i = p[i];
                x[i] += alpha * p_i;
                p[i] = z_i + beta * p_i;
            }
        }
    }
    __syncthreads();
    if (is_last_block(counter) && threadIdx.x == 0) conjugate(state, p_dot_q, r_sums);
}

// rho = r.z before the first iteration; ends the method unless it is positive.
extern "C" __global__ void cg_start(double* state, const double* r_sums) {
    state[RHO] = r_sums[1];
    if (!is_positive(r_sums[1])) state[END] = BAD_R_DOT_Z;
}
