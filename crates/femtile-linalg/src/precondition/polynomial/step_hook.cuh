// A step of a smoother while y = A x is computed: d = beta d + alpha D^-1 (b - y), next = x + d.
#pragma once

struct Hook {
    T* next;
    // None where no other step reads this one.
    T* direction;
    const T* b;
    const T* inverse_diagonal;
    double alpha, beta;

    __device__ bool is_idle() const { return false; }
    __device__ void post(u64 row, const T* x, T y) {
        T step = (T)alpha * (inverse_diagonal[row] * (b[row] - y));
        if (beta != 0.0) step += (T)beta * direction[row];
        if (direction != 0) direction[row] = step;
        next[row] = x[row] + step;
    }
    __device__ void finish() {}
};
