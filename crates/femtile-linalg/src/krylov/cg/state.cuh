// The numbers of a solve by conjugate gradients, at the places that the host knows them by.
#pragma once

const u32 RHO = 0, ALPHA = 1, BETA = 2, ITERATION = 3, END = 4, THRESHOLD = 5, LIMIT = 6, RING_START = 7, RING = 64;
const double RUNNING = 0.0, CONVERGED = 1.0, LIMIT_REACHED = 2.0, BAD_P_DOT_Q = 3.0, BAD_R_DOT_R = 4.0,
             BAD_R_DOT_Z = 5.0;

__device__ inline bool is_finite(double value) { return value - value == 0.0; }
__device__ inline bool is_positive(double value) { return value > 0.0 && is_finite(value); }
