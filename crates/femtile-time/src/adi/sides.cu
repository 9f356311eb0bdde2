// Values that sides of the box give, at lists of nodes.
#include "femtile.cuh"

// w at some nodes becomes what is given; numbers that are none of its n_nodes nodes are left out.
extern "C" __global__ void adi_set(T* w, const u64* nodes, const T* values, u64 n, u64 n_nodes) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n && nodes[i] < n_nodes) w[nodes[i]] = values[i];
}

// w at some nodes grows by s times what is given; no node is named twice.
extern "C" __global__ void adi_add(
    T* w, const u64* nodes, const T* values, double scale, u64 n, u64 n_nodes) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n && nodes[i] < n_nodes) w[nodes[i]] += (T)scale * values[i];
}
