// The product of a matrix with all lines along one axis of a box.
#include "femtile.cuh"

// Numbers of values along each axis, the axis of the product, and strides of both vectors.
struct Axis {
    u64 counts[3], axis, from, from_strides[3], to, to_strides[3];
};

// y = F x along an axis, F: [n][n]; a thread computes one value of y.
extern "C" __global__ void box_contract(T* y, const T* x, const T* matrix, Axis along) {
    u64 rest = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    u64 from = along.from, to = along.to, row = 0;
#pragma unroll
    for (u32 axis = 0; axis < 3; ++axis) {
        const u64 at = rest % along.counts[axis];
        rest /= along.counts[axis];
        to += at * along.to_strides[axis];
        if (axis == along.axis) row = at;
        else from += at * along.from_strides[axis];
    }
    if (rest > 0) return;
    const u64 n = along.counts[along.axis], stride = along.from_strides[along.axis];
    T sum = 0;
    for (u64 i = 0; i < n; ++i) sum += __ldg(matrix + row * n + i) * x[from + i * stride];
    y[to] = sum;
}
