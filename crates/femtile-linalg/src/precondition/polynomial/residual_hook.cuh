// r = b - y while y = A x is computed.
#pragma once

struct Hook {
    T* r;
    const T* b;

    __device__ bool is_idle() const { return false; }
    __device__ void post(u64 row, const T*, T y) { r[row] = b[row] - y; }
    __device__ void finish() {}
};
