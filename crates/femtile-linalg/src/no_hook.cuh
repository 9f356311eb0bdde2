// The hook that does nothing.
#pragma once

struct Hook {
    u64 unused;
    __device__ bool is_idle() const { return false; }
    __device__ void post(u64 row, const T* x, T y) {}
    __device__ void finish() {}
};
