// The explicit parts of alternating directions, a thread a node:
//
//   w = s (A u + f)   or   w = u + s (A_a u + f)   and   w = w + s A_0 u
//
//   (A_a u)_p = l_p (u_{p-e} - u_p) + w_p (u_{p+e} - u_p) + r_p / d u_p
//
// with the names of operator.rs. Nodes on Dirichlet sides get 0, or stay as they are where something is added.
#include "femtile.cuh"
// struct Operator, DIMENSION, PAIRS; first_held, last_held, is_periodic, couplings, reaction_at, source_at, mixed_at.
#include "adi_operator.cuh"

#ifndef FEMTILE_AXIS
#define FEMTILE_AXIS 3
#endif
// The axis whose part is taken, or ALL.
const u32 AXIS = FEMTILE_AXIS, ALL = 3;

struct Node {
    u32 number[3];
    u64 place;
};

__device__ __forceinline__ u32 length(const Operator& o, u32 axis) { return (u32)o.nodes[axis]; }

__device__ __forceinline__ u64 stride(const Operator& o, u32 axis) {
    return axis == 0 ? 1 : axis == 1 ? o.nodes[0] : o.nodes[0] * o.nodes[1];
}

// The node before (0), at (1) or behind (2) another along an axis; beyond a side the node itself.
__device__ __forceinline__ Node neighbour(const Operator& o, u32 axis, u32 side, Node node) {
    const u32 i = node.number[axis], n = length(o, axis);
    u32 to = i;
    if (side == 0) to = i > 0 ? i - 1 : is_periodic(axis) ? n - 1 : i;
    if (side == 2) to = i + 1 < n ? i + 1 : is_periodic(axis) ? 0 : i;
    node.number[axis] = to;
    node.place = node.place + to * stride(o, axis) - i * stride(o, axis);
    return node;
}

__device__ __forceinline__ bool is_held(const Operator& o, const Node& node) {
    bool held = false;
#pragma unroll
    for (u32 axis = 0; axis < DIMENSION; ++axis) {
        held |= (first_held(axis) && node.number[axis] == 0) ||
                (last_held(axis) && node.number[axis] + 1 == length(o, axis));
    }
    return held;
}

// Weights of the difference quotient (gradient) and of what is adjoint to it, as Operator::weights.
struct Weights {
    double gradient[3], divergence[3];
};

__device__ __forceinline__ Weights weights(const Operator& o, u32 axis, const Node& node) {
    const u32 i = node.number[axis];
    const double inverse = 1.0 / o.spacing[axis], half = 0.5 * inverse;
    if (is_periodic(axis) || (i > 0 && i + 1 < length(o, axis))) return {{-half, 0.0, half}, {-half, 0.0, half}};
    if (i == 0) return {{0.0, -inverse, inverse}, {0.0, inverse, inverse}};
    return {{-inverse, inverse, 0.0}, {-inverse, -inverse, 0.0}};
}

// The mixed derivative of axes A and B at a node that is not held.
template <u32 PAIR, u32 A, u32 B>
__device__ __forceinline__ double one_mixed(const Operator& o, const T* u, const Node& node) {
    const Weights a = weights(o, A, node), b = weights(o, B, node);
    double sum = 0.0;
#pragma unroll
    for (u32 i = 0; i < 3; ++i) {
        const Node at_a = neighbour(o, A, i, node);
        const double d_a = i == 1 && a.divergence[1] == 0.0 ? 0.0 : mixed_at(o, PAIR, at_a.number, at_a.place);
#pragma unroll
        for (u32 j = 0; j < 3; ++j) {
            const double first = a.divergence[i] * b.gradient[j], second = b.divergence[j] * a.gradient[i];
            if (first == 0.0 && second == 0.0) continue;
            const Node at_b = neighbour(o, B, j, node), at = neighbour(o, B, j, at_a);
            const double d_b = second == 0.0 ? 0.0 : mixed_at(o, PAIR, at_b.number, at_b.place);
            sum += (first * d_a + second * d_b) * (double)u[at.place];
        }
    }
    return sum;
}

__device__ __forceinline__ double all_mixed(const Operator& o, const T* u, const Node& node) {
    double sum = 0.0;
    if (PAIRS & 1) sum += one_mixed<0, 0, 1>(o, u, node);
    if (PAIRS & 2) sum += one_mixed<1, 0, 2>(o, u, node);
    if (PAIRS & 4) sum += one_mixed<2, 1, 2>(o, u, node);
    return sum;
}

__device__ __forceinline__ T along(const Operator& o, const T* u, const Node& node, u32 axis, T here) {
    T l, w;
    couplings(o, axis, node.number, node.place, l, w);
    const T before = u[neighbour(o, axis, 0, node).place], behind = u[neighbour(o, axis, 2, node).place];
    return l * (before - here) + w * (behind - here);
}

__device__ __forceinline__ T explicit_at(const Operator& o, const T* u, const Node& node, T scale, double time) {
    const T here = u[node.place];
    T sum = (T)source_at(o, node.number, node.place, time);
    if (AXIS == 0 || AXIS == ALL) sum += along(o, u, node, 0, here);
    if (DIMENSION > 1 && (AXIS == 1 || AXIS == ALL)) sum += along(o, u, node, 1, here);
    if (DIMENSION > 2 && (AXIS == 2 || AXIS == ALL)) sum += along(o, u, node, 2, here);
    const T share = AXIS == ALL ? T(1) : T(1) / DIMENSION;
    sum += share * (T)reaction_at(o, node.number, node.place) * here;
    if (AXIS == ALL && PAIRS != 0) sum += (T)all_mixed(o, u, node);
    return scale * sum + (AXIS == ALL ? T(0) : here);
}

// Reads n values of u once and writes n values of w.
extern "C" __global__ void adi_explicit(T* w, const T* u, Operator o, double scale, double time) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= o.nodes[0]) return;
    for (u32 k = blockIdx.z; k < o.nodes[2]; k += gridDim.z) {
        for (u32 j = blockIdx.y; j < o.nodes[1]; j += gridDim.y) {
            const Node node = {{i, j, k}, i + o.nodes[0] * (j + o.nodes[1] * k)};
            w[node.place] = is_held(o, node) ? T(0) : explicit_at(o, u, node, (T)scale, time);
        }
    }
}

// Reads n values of u and w, writes n values of w.
extern "C" __global__ void adi_mixed(T* w, const T* u, Operator o, double scale) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= o.nodes[0]) return;
    for (u32 k = blockIdx.z; k < o.nodes[2]; k += gridDim.z) {
        for (u32 j = blockIdx.y; j < o.nodes[1]; j += gridDim.y) {
            const Node node = {{i, j, k}, i + o.nodes[0] * (j + o.nodes[1] * k)};
            if (!is_held(o, node)) w[node.place] += (T)(scale * all_mixed(o, u, node));
        }
    }
}
