// The passes of s-step conjugate gradients on a GPU, for blocks of up to STEPS steps.
#include "femtile.cuh"
#include "several_sums.cuh"

const u32 STEPS = FEMTILE_STEPS;

// Directions P, the basis T and the diagonal of D^-1; null where there is none.
struct Vectors {
    T* p[STEPS];
    const T* t[STEPS + 1];
    const T* inverse_diagonal;
};

// A matrix by rows, or a vector in its first entries.
struct Coefficients {
    double of[STEPS * STEPS];
};

// The entry of D of a row.
__device__ inline T diagonal(const Vectors& v, u64 row) {
    return v.inverse_diagonal ? (T)1 / v.inverse_diagonal[row] : (T)1;
}

// C = P^T A T of the directions before, by rows.
extern "C" __global__ void s_step_couplings(
    double* sums, double* partials, u32* counter, Vectors v, u32 n_before, u32 n_steps, u64 n_rows) {
    double of_thread[STEPS * STEPS] = {};
    for (u64 row = first_row(); row < n_rows; row += row_stride()) {
        T p[STEPS], a_t[STEPS];
        const T d = diagonal(v, row);
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) {
            p[i] = i < n_before ? v.p[i][row] : (T)0;
            a_t[i] = i < n_steps ? d * v.t[i + 1][row] : (T)0;
        }
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) {
#pragma unroll
            for (u32 j = 0; j < STEPS; ++j) of_thread[i * STEPS + j] += (double)p[i] * a_t[j];
        }
    }
    sums_over_blocks(sums, partials, counter, of_thread);
}

// P = T + P B, of P the first n_before columns; then W = P^T A T by rows, and P^T r behind it.
extern "C" __global__ void s_step_directions(
    double* sums, double* partials, u32* counter, Vectors v, Coefficients b, u32 n_before, u32 n_steps, u64 n_rows) {
    double of_thread[STEPS * STEPS + STEPS] = {};
    for (u64 row = first_row(); row < n_rows; row += row_stride()) {
        T before[STEPS], t[STEPS + 1];
        const T d = diagonal(v, row);
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) before[i] = i < n_before ? v.p[i][row] : (T)0;
#pragma unroll
        for (u32 j = 0; j <= STEPS; ++j) t[j] = j <= n_steps ? v.t[j][row] : (T)0;
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) {
            if (i >= n_steps) continue;
            T p = t[i];
#pragma unroll
            for (u32 l = 0; l < STEPS; ++l) p += (T)b.of[l * STEPS + i] * before[l];
            v.p[i][row] = p;
#pragma unroll
            for (u32 j = 0; j < STEPS; ++j) of_thread[i * STEPS + j] += (double)p * (d * t[j + 1]);
            of_thread[STEPS * STEPS + i] += (double)p * (d * t[0]);
        }
    }
    sums_over_blocks(sums, partials, counter, of_thread);
}

// x += P a.
extern "C" __global__ void s_step_solution(T* x, Vectors v, Coefficients a, u32 n_steps, u64 n_rows) {
    for (u64 row = first_row(); row < n_rows; row += row_stride()) {
        T p[STEPS];
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) p[i] = i < n_steps ? v.p[i][row] : (T)0;
        T sum = x[row];
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) sum += (T)a.of[i] * p[i];
        x[row] = sum;
    }
}

// t_0 = D^-1 (b - v); sums the square of b - v.
extern "C" __global__ void s_step_residual(
    double* sums, double* partials, u32* counter, T* t_0, const T* b, const T* v, const T* inverse_diagonal, u64 n_rows) {
    double of_thread[1] = {};
    for (u64 row = first_row(); row < n_rows; row += row_stride()) {
        const T r = b[row] - v[row];
        t_0[row] = inverse_diagonal ? inverse_diagonal[row] * r : r;
        of_thread[0] += (double)r * r;
    }
    sums_over_blocks(sums, partials, counter, of_thread);
}
