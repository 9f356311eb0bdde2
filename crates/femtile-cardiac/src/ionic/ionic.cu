// A step of the equations of the membrane, a thread a point:
//
//   V <- V + dt (-I(V, w) + stimulus),   w <- w_inf + (w - w_inf) exp(-dt / tau)   or   w <- w + dt f(V, w)
//
// in one stage, or in two of which the first, half as long, gives the coefficients of the second; see scheme.rs.
#include "femtile.cuh"
// VARIABLES: V and the states; GATES: the states with 32 bits, the first ones; STAGES. ionic_stage(out, in) gives V and
// the states with 64 bits, ionic_gates(out, in) the others; inputs in the order of StageInputs.
#include "ionic_model.cuh"

const u32 STIMULUS = VARIABLES, LENGTH = VARIABLES + 1, START = VARIABLES + 2, INPUTS = 2 * VARIABLES + 2;

// The variables after a stage.
__device__ __forceinline__ void stage_of(double* out, const double* in) {
    double others[VARIABLES - GATES];
    ionic_stage(others, in);
    out[0] = others[0];
#pragma unroll
    for (u32 k = 1; k < VARIABLES - GATES; ++k) out[GATES + k] = others[k];
    if (GATES == 0) return;
    float single[INPUTS], gates[GATES + 1];
#pragma unroll
    for (u32 k = 0; k < INPUTS; ++k) single[k] = (float)in[k];
    ionic_gates(gates, single);
#pragma unroll
    for (u32 k = 0; k < GATES; ++k) out[1 + k] = gates[k];
}

// Reads and writes V and the states of each point once, [VARIABLES - 1 - GATES][stride] and [GATES][stride]; nodes and
// stimulus may be null. Points are fewer than 2^32, as nodes are.
extern "C" __global__ void ionic_advance(
    double* v, double* states, float* gates, const double* stimulus, const u32* nodes, u64 n, u64 stride, double dt) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const u32 node = nodes ? nodes[i] : i;
    double in[INPUTS], out[VARIABLES];
    out[0] = v[node];
#pragma unroll
    for (u32 k = 0; k < GATES; ++k) out[1 + k] = gates[k * stride + i];
#pragma unroll
    for (u32 k = GATES + 1; k < VARIABLES; ++k) out[k] = states[(k - 1 - GATES) * stride + i];
    in[STIMULUS] = stimulus ? stimulus[node] : 0.0;
#pragma unroll
    for (u32 k = 0; k < VARIABLES; ++k) in[START + k] = out[k];
#pragma unroll 1
    for (u32 stage = 0; stage < STAGES; ++stage) {
#pragma unroll
        for (u32 k = 0; k < VARIABLES; ++k) in[k] = out[k];
        in[LENGTH] = stage + 1 < STAGES ? 0.5 * dt : dt;
        stage_of(out, in);
    }
    v[node] = out[0];
#pragma unroll
    for (u32 k = 0; k < GATES; ++k) gates[k * stride + i] = (float)out[1 + k];
#pragma unroll
    for (u32 k = GATES + 1; k < VARIABLES; ++k) states[(k - 1 - GATES) * stride + i] = out[k];
}
