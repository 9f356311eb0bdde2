// The passes of conjugate gradients besides the products. A block takes a tile, or more of them before and after the
// iterations, as in a product of vectors: each sum there has the bits of a sum alone.
//
// Step length and conjugation have no kernel of their own: every block works them out from the sums, and the first
// block of the second pass moves the state on. So an iteration is three kernels.
#include "femtile.cuh"
#include "sums.cuh"
#include "state.cuh"

const u32 B_DOT_B = 0, R_DOT_R = 1, R_DOT_Z = 2, N_FIRST = 6, N_BEGIN = 5, N_FINISH = 6;
const u32 FIRST_SUMS = CURRENT + N_STATE;
const u32 TOLERANCE = 0, SIZE = 1, REDUCTION = 2, MOST_ITERATIONS = 3, B_RANGE = 4, R_RANGE = 6, OF_ROUNDING = 8;
const double ROUNDING = 1e-15, LOOSEST = 0.5, ROUGHEST = 0.1, NOT_BEGUN = 6.0;

// The sums of all blocks, each in the order of sum_over_blocks; `partials` holds N numbers per block.
template <u32 N>
__device__ inline void leave_sums(double* results, double* partials, u32* counter, const double (&of_thread)[N]) {
    for (u32 s = 0; s < N; ++s) {
        const double of_block = block_sum(of_thread[s]);
        if (threadIdx.x == 0) partials[s * (u64)gridDim.x + blockIdx.x] = of_block;
    }
    if (!is_last_block(counter)) return;
    for (u32 s = 0; s < N; ++s) {
        const double sum = sum_partials(partials + s * (u64)gridDim.x, gridDim.x);
        if (threadIdx.x == 0) results[s] = sum;
    }
}

// r = q + weight (q - previous_q), x += weight (x - previous_x), and the values before become the previous ones; a thread
// takes an entry.
extern "C" __global__ void cg_extrapolate(
    T* x, T* previous_x, const T* q, T* previous_q, T* r, T weight, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const T last_x = x[i], last_q = q[i];
    r[i] = last_q + weight * (last_q - previous_q[i]);
    x[i] = last_x + weight * (last_x - previous_x[i]);
    previous_x[i] = last_x;
    previous_q[i] = last_q;
}

// One entry: r = b - q, p = m r, and what it adds to b.b, r.r, r.p, b.tb and tb.tb.
__device__ inline T begin_entry(double (&sums)[N_BEGIN], T b, T q, T m, T t, T& p) {
    const T r = b - q, scaled = t * b;
    p = m * r;
    sums[0] += (double)b * (double)b;
    sums[1] += (double)r * (double)r;
    sums[2] += (double)r * (double)p;
    sums[3] += (double)b * (double)scaled;
    sums[4] += (double)scaled * (double)scaled;
    return r;
}

// r = b - r, start = x and, with m, p = m r; leaves the sums of the start. Reads r, b, x, m, t, writes r, start, p.
// Null for start, m or t: none.
extern "C" __global__ void cg_begin(
    T* r, T* p, T* start, double* results, double* partials, u32* counter, const T* b, const T* x, const T* m,
    const T* t, u64 n, u32 n_tiles) {
    double sums[N_BEGIN] = {};
    const u64 tail = tail_entry(n);
    for (u32 i = 0; i < n_tiles; ++i) {
        const u64 tile = blockIdx.x * (u64)n_tiles + i;
        Pack<T> read_r[TILE_PACKS], read_b[TILE_PACKS], read_x[TILE_PACKS], read_m[TILE_PACKS], read_t[TILE_PACKS];
        load_tile(read_r, r, tile, n);
        load_tile(read_b, b, tile, n);
        if (start) load_tile(read_x, x, tile, n);
        for (u32 k = 0; k < TILE_PACKS; ++k) read_m[k] = read_t[k] = Pack<T>();
        if (m) load_tile(read_m, m, tile, n);
        if (t) load_tile(read_t, t, tile, n);
        if (start) store_tile(start, read_x, tile, n);
        for (u32 k = 0; k < TILE_PACKS; ++k) {
            for (u32 j = 0; j < Pack<T>::N; ++j) {
                T p_j;
                read_r[k].value[j] = begin_entry(
                    sums, read_b[k].value[j], read_r[k].value[j], read_m[k].value[j], read_t[k].value[j], p_j);
                read_m[k].value[j] = p_j;
            }
        }
        store_tile(r, read_r, tile, n);
        if (m) store_tile(p, read_m, tile, n);
    }
    if (tail < n) {
        T p_i;
        if (start) start[tail] = x[tail];
        r[tail] = begin_entry(sums, b[tail], r[tail], m ? m[tail] : T(), t ? t[tail] : T(), p_i);
        if (m) p[tail] = p_i;
    }
    leave_sums(results, partials, counter, sums);
}

__device__ inline bool lies_in(double value, const double* range) { return range[0] <= value && value <= range[1]; }

// Sets the state to the start of a solve: the tolerance from the settings, and whether there is anything to do. One warp.
extern "C" __global__ void cg_decide(double* state, const double* sums, const double* settings) {
    if (threadIdx.x != 0) return;
    const double b_norm = sqrt(sums[B_DOT_B]), r_norm = sqrt(sums[R_DOT_R]), rho = sums[R_DOT_Z];
    double tolerance = settings[TOLERANCE];
    if (settings[SIZE] > 0.0) tolerance = fmin(tolerance * settings[SIZE] / b_norm, LOOSEST);
    if (settings[REDUCTION] > 0.0) tolerance = fmax(fmin(tolerance, settings[REDUCTION] * r_norm / b_norm), ROUNDING);
    if (settings[OF_ROUNDING] > 0.0) tolerance = fmax(tolerance, fmin(settings[OF_ROUNDING] / b_norm, ROUGHEST));
    const bool is_met = r_norm / b_norm <= tolerance;
    const bool is_usual = lies_in(b_norm, settings + B_RANGE) && is_finite(r_norm) &&
                          (is_met || lies_in(r_norm, settings + R_RANGE));
    const double threshold = tolerance * b_norm;
    state[RHO] = rho;
    state[ALPHA] = state[BETA] = state[ITERATION] = 0.0;
    state[THRESHOLD] = threshold * threshold;
    for (u32 i = 0; i < N_FIRST; ++i) state[FIRST_SUMS + i] = sums[i];
    state[LIMIT] = settings[MOST_ITERATIONS];
    state[END] = !is_usual                            ? NOT_BEGUN
                 : is_met                             ? CONVERGED
                 : settings[MOST_ITERATIONS] <= 0.0   ? LIMIT_REACHED
                 : is_positive(rho)                   ? RUNNING
                                                      : NOT_BEGUN;
}

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

// One entry of r = b - q, and what it adds to r.tr, r.r, tr.tr, x.b, x.r and z.z.
__device__ inline void finish_entry(double (&sums)[N_FINISH], T b, T q, T x, T t, T z) {
    const T r = b - q, scaled = t * r;
    sums[0] += (double)r * (double)scaled;
    sums[1] += (double)r * (double)r;
    sums[2] += (double)scaled * (double)scaled;
    sums[3] += (double)x * (double)b;
    sums[4] += (double)x * (double)r;
    sums[5] += (double)z * (double)z;
}

// Leaves the sums of the iterate x, where q = A x. Reads q, b, x, z, t. Null for z or t: none.
extern "C" __global__ void cg_finish(
    double* results, double* partials, u32* counter, const T* q, const T* b, const T* x, const T* z, const T* t, u64 n,
    u32 n_tiles) {
    double sums[N_FINISH] = {};
    const u64 tail = tail_entry(n);
    for (u32 i = 0; i < n_tiles; ++i) {
        const u64 tile = blockIdx.x * (u64)n_tiles + i;
        Pack<T> read_q[TILE_PACKS], read_b[TILE_PACKS], read_x[TILE_PACKS], read_z[TILE_PACKS], read_t[TILE_PACKS];
        load_tile(read_q, q, tile, n);
        load_tile(read_b, b, tile, n);
        load_tile(read_x, x, tile, n);
        for (u32 k = 0; k < TILE_PACKS; ++k) read_z[k] = read_t[k] = Pack<T>();
        if (z) load_tile(read_z, z, tile, n);
        if (t) load_tile(read_t, t, tile, n);
        for (u32 k = 0; k < TILE_PACKS; ++k) {
            for (u32 j = 0; j < Pack<T>::N; ++j) {
                finish_entry(
                    sums, read_b[k].value[j], read_q[k].value[j], read_x[k].value[j], read_t[k].value[j],
                    read_z[k].value[j]);
            }
        }
    }
    if (tail < n) finish_entry(sums, b[tail], q[tail], x[tail], t ? t[tail] : T(), z ? z[tail] : T());
    leave_sums(results, partials, counter, sums);
}
