// Sums p.q while q = A p is computed, and copies the state for the passes that follow; idle once the method has
// ended. Comes after state.cuh.
#pragma once

struct Hook {
    double* p_dot_q;
    double* partials;
    u32* counters;
    double* state;
    double sum;               // of this thread; 0 before
    u64 n_before, n_blocks;  // of kernels that end in one sum; 0 where one kernel does it all

    __device__ bool is_idle() const {
        if (blockIdx.x == 0 && threadIdx.x < N_STATE) state[CURRENT + threadIdx.x] = state[threadIdx.x];
        return state[END] != RUNNING;
    }
    __device__ void post(u64 row, const T* p, T q) { sum += (double)p[row] * (double)q; }
    __device__ void add(double part) { sum += part; }
    __device__ void finish() {
        const double sums[1] = {sum};
        const u32 all = n_blocks == 0 ? gridDim.x : (u32)n_blocks;
        leave_addends(p_dot_q, partials, counters, sums, (u32)n_before + blockIdx.x, all);
    }
};
