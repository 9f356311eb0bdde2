#include "femtile.cuh"

// Adds numbers to the entries of an array at some places, each of them once, or puts them there.
extern "C" __global__ void form_entries(double* values, const u64* places, const double* entries, u64 n, u32 adds) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[places[i]] = adds ? values[places[i]] + entries[i] : entries[i];
}
