// Weights of the inner nodes of a patch: the 1-D weights of a line follow the eigenvalues of its modes.
#pragma once
#include "femtile.cuh"
#include "colour.cuh"
#include "modes.cuh"
#include "nodes.cuh"

// The 1-D weight of an inner node; a mirror image has the weight of its node.
__device__ inline T weight(const T* hats, const Colour& colour, const Patch& patch, u32 axis, u32 place) {
    const u32 node = has_node(colour, patch, axis, place + 1) ? place : N - 1 - place;
    const bool is_first = node < MIDDLE && patch.has_first_alone(colour, axis);
    const bool is_last = node > MIDDLE && patch.has_last_alone(colour, axis);
    const T hat = __ldg(hats + node);
    return is_first || is_last ? (T)1 : hat;
}
