// The numbers of a solve by conjugate gradients, at the places that the host knows them by.
//
// The last pass of an iteration writes the state, the product of the next one copies it to CURRENT, and the passes
// between read that copy: no kernel reads what it writes, so blocks need not wait for each other.
//
// A sum is kept as ADDENDS numbers, which whoever needs it adds up in a fixed order: where there are no more blocks
// than that each leaves its own, otherwise the last block to finish leaves the total in the first.
#pragma once

const u32 RHO = 0, ALPHA = 1, BETA = 2, ITERATION = 3, END = 4, THRESHOLD = 5, LIMIT = 6, N_STATE = 7;
const u32 RING_START = 7, RING = 64, CURRENT = RING_START + RING;
const u32 ADDENDS = 64;
const double RUNNING = 0.0, CONVERGED = 1.0, LIMIT_REACHED = 2.0, BAD_P_DOT_Q = 3.0, BAD_R_DOT_R = 4.0,
             BAD_R_DOT_Z = 5.0;

__device__ inline bool is_finite(double value) { return value - value == 0.0; }
__device__ inline bool is_positive(double value) { return value > 0.0 && is_finite(value); }

// The sum of ADDENDS numbers, known to all threads; all lanes of a warp call it.
__device__ inline double sum_addends(const double* addends) {
    const u32 lane = threadIdx.x % WARP;
    double sum = addends[lane] + addends[lane + WARP];
    for (u32 bits = WARP / 2; bits > 0; bits /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, bits);
    return sum;
}

// Sums N numbers of each thread of the grid into as many times ADDENDS; `partials` has room for N numbers a block.
template <u32 N>
__device__ inline void leave_addends(
    double* addends, double* partials, u32* counter, const double (&of_thread)[N]) {
    double of_block[N];
    for (u32 s = 0; s < N; ++s) of_block[s] = block_sum(of_thread[s]);
    const bool is_direct = gridDim.x <= ADDENDS;
    if (threadIdx.x == 0) {
        for (u32 s = 0; s < N; ++s) {
            if (is_direct) {
                addends[s * ADDENDS + blockIdx.x] = of_block[s];
            } else {
                partials[s * gridDim.x + blockIdx.x] = of_block[s];
            }
        }
    }
    if (is_direct || !is_last_block(counter)) return;
    for (u32 s = 0; s < N; ++s) {
        const double sum = sum_partials(partials + s * gridDim.x, gridDim.x);
        if (threadIdx.x == 0) addends[s * ADDENDS] = sum;
    }
}
