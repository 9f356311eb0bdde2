// The passes of a solve before its first and after its last iteration. A block takes one or more tiles, as in a product of
// vectors: each sum has the bits of a sum alone.
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
// Null for m or t: none.
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
        load_tile(read_x, x, tile, n);
        for (u32 k = 0; k < TILE_PACKS; ++k) read_m[k] = read_t[k] = Pack<T>();
        if (m) load_tile(read_m, m, tile, n);
        if (t) load_tile(read_t, t, tile, n);
        store_tile(start, read_x, tile, n);
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
        start[tail] = x[tail];
        r[tail] = begin_entry(sums, b[tail], r[tail], m ? m[tail] : T(), t ? t[tail] : T(), p_i);
        if (m) p[tail] = p_i;
    }
    leave_sums(results, partials, counter, sums);
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
