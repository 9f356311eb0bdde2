// The scalars of conjugate gradients, at the same indices as on the host.
//
// The last pass of an iteration writes the state, the product of the next one copies it to CURRENT, and the passes
// between read that copy: no kernel reads what it writes, so blocks need not wait for each other.
//
// A sum is kept as ADDENDS numbers, which whoever needs it adds up in a fixed order: where there are no more blocks
// than that each leaves its own, otherwise every ADDENDS-th block belongs to one of them, and the last of these to finish
// leaves their sum.
#pragma once

const u32 RHO = 0, ALPHA = 1, BETA = 2, ITERATION = 3, END = 4, THRESHOLD = 5, LIMIT = 6, N_STATE = 7;
const u32 RING_START = 7, RING = 64, RING_WIDTH = 3, CURRENT = RING_START + RING * RING_WIDTH;
const u32 ADDENDS = 64;
const double RUNNING = 0.0, CONVERGED = 1.0, LIMIT_REACHED = 2.0, BAD_P_DOT_Q = 3.0, BAD_R_DOT_R = 4.0,
             BAD_R_DOT_Z = 5.0;

// Keeps what an iteration has found: r.r after it, rho before it and alpha.
__device__ inline void keep(double* state, double iteration, double r_dot_r, double rho, double alpha) {
    double* const found = state + RING_START + (u32)iteration % RING * RING_WIDTH;
    found[0] = r_dot_r;
    found[1] = rho;
    found[2] = alpha;
}

__device__ inline bool is_finite(double value) { return value - value == 0.0; }
__device__ inline bool is_positive(double value) { return value > 0.0 && is_finite(value); }

// The sum of ADDENDS numbers, known to all threads; all lanes of a warp call it.
__device__ inline double sum_addends(const double* addends) {
    const u32 lane = threadIdx.x % WARP;
    double sum = addends[lane] + addends[lane + WARP];
    for (u32 bits = WARP / 2; bits > 0; bits /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, bits);
    return sum;
}

// Sums N numbers of each thread of n_blocks blocks into as many times ADDENDS; `partials` holds N numbers per block,
// `counters` are ADDENDS zeros. The blocks may be those of several kernels that follow each other.
template <u32 N>
__device__ inline void leave_addends(
    double* addends, double* partials, u32* counters, const double (&of_thread)[N], u32 block, u32 n_blocks) {
    double of_block[N];
    for (u32 s = 0; s < N; ++s) of_block[s] = block_sum(of_thread[s]);
    const bool is_direct = n_blocks <= ADDENDS;
    if (is_direct && block == 0) {
        // Sums over ranks write all addends, and other ranks may have more blocks.
        for (u32 i = n_blocks + threadIdx.x; i < ADDENDS; i += blockDim.x) {
            for (u32 s = 0; s < N; ++s) addends[s * ADDENDS + i] = 0.0;
        }
    }
    if (threadIdx.x == 0) {
        for (u32 s = 0; s < N; ++s) {
            if (is_direct) {
                addends[s * ADDENDS + block] = of_block[s];
            } else {
                partials[s * n_blocks + block] = of_block[s];
            }
        }
    }
    const u32 addend = block % ADDENDS;
    if (is_direct || !is_last_of(counters + addend, (n_blocks - addend + ADDENDS - 1) / ADDENDS)) return;
    for (u32 s = 0; s < N; ++s) {
        // Volatile, as a neighbour may lie in the cache from when this multiprocessor summed another addend.
        const volatile double* const of_blocks = partials + s * n_blocks;
        double sum = 0.0;
        for (u32 i = addend + ADDENDS * threadIdx.x; i < n_blocks; i += ADDENDS * blockDim.x) sum += of_blocks[i];
        sum = block_sum(sum);
        if (threadIdx.x == 0) addends[s * ADDENDS + addend] = sum;
    }
}

// The same for all blocks of one kernel.
template <u32 N>
__device__ inline void leave_addends(double* addends, double* partials, u32* counters, const double (&of_thread)[N]) {
    leave_addends(addends, partials, counters, of_thread, blockIdx.x, gridDim.x);
}
