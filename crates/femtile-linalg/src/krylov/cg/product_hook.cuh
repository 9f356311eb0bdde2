// Sums p.q while q = A p is computed, and copies the state for the passes that follow; idle once the method has
// ended. Comes after state.cuh.
#pragma once

struct Hook {
    double* p_dot_q;
    double* partials;
    u32* counter;
    double* state;
    double sum;  // of this thread; 0 before

    __device__ bool is_idle() const {
        if (blockIdx.x == 0 && threadIdx.x < N_STATE) state[CURRENT + threadIdx.x] = state[threadIdx.x];
        return state[END] != RUNNING;
    }
    __device__ void post(u64 row, const T* p, T q) { sum += (double)p[row] * (double)q; }
    __device__ void finish() {
        const double sums[1] = {sum};
        leave_addends(p_dot_q, partials, counter, sums);
    }
};
