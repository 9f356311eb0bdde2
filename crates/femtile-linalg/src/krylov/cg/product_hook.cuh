// Sums p.q while q = A p is computed; idle once the method has ended. Comes after state.cuh.
#pragma once

struct Hook {
    double* p_dot_q;
    double* partials;
    u32* counter;
    const double* state;
    double sum;  // of this thread; 0 before

    __device__ bool is_idle() const { return state[END] != RUNNING; }
    __device__ void post(u64 row, const T* p, T q) { sum += (double)p[row] * (double)q; }
    __device__ void finish() {
        const double of_block = block_sum(sum);
        if (threadIdx.x == 0) partials[blockIdx.x] = of_block;
        if (is_last_block(counter)) {
            const double total = sum_partials(partials, gridDim.x);
            if (threadIdx.x == 0) *p_dot_q = total;
        }
    }
};
