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

// A matrix by rows.
struct Coefficients {
    double of[STEPS * STEPS];
};

// The entry of D of a row.
__device__ inline T diagonal(const Vectors& v, u64 row) {
    return v.inverse_diagonal ? (T)1 / v.inverse_diagonal[row] : (T)1;
}

// Pairs of a direction before and a vector of the basis, and of two vectors of the basis.
const u32 WITH_BEFORE = STEPS * (STEPS + 1);
const u32 OF_BASIS = 1 + STEPS * (STEPS + 1) / 2;

// Adds the products of a row: P^T D T by rows, then of T^T D T the first entry and those above the diagonal by columns.
__device__ inline void add_products(
    double (&sums)[WITH_BEFORE + OF_BASIS], const T (&p)[STEPS], const T (&t)[STEPS + 1], T d) {
#pragma unroll
    for (u32 k = 0; k <= STEPS; ++k) {
        const double d_t = d * t[k];
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) sums[i * (STEPS + 1) + k] += p[i] * d_t;
        if (k == 0) sums[WITH_BEFORE] += t[0] * d_t;
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) {
            if (i < k) sums[WITH_BEFORE + 1 + k * (k - 1) / 2 + i] += t[i] * d_t;
        }
    }
}

// P^T D T of the directions before, and T^T D T.
extern "C" __global__ void __launch_bounds__(SUM_THREADS) s_step_gram(
    double* sums, double* partials, u32* counter, Vectors v, u32 n_before, u32 n_t, u64 n_rows) {
    double of_thread[WITH_BEFORE + OF_BASIS] = {};
    for (u64 row = first_row(); row < n_rows; row += row_stride()) {
        T p[STEPS], t[STEPS + 1];
        const T d = diagonal(v, row);
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) p[i] = i < n_before ? v.p[i][row] : (T)0;
#pragma unroll
        for (u32 k = 0; k <= STEPS; ++k) t[k] = k < n_t ? v.t[k][row] : (T)0;
        add_products(of_thread, p, t, d);
    }
    sums_over_blocks(sums, partials, counter, of_thread);
}

// x += P_- a_- + P a with P = R + P_- B in place of P_-, the first n_before columns of P; R is the first n_steps columns of T, and
// the rows of a are a and a_-.
extern "C" __global__ void s_step_update(
    T* x, Vectors v, Coefficients b, Coefficients a, u32 n_before, u32 n_steps, u64 n_rows) {
    for (u64 row = first_row(); row < n_rows; row += row_stride()) {
        T before[STEPS], r[STEPS];
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) {
            before[i] = i < n_before ? v.p[i][row] : (T)0;
            r[i] = i < n_steps ? v.t[i][row] : (T)0;
        }
        T sum = x[row];
#pragma unroll
        for (u32 l = 0; l < STEPS; ++l) sum += (T)a.of[STEPS + l] * before[l];
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) {
            if (i >= n_steps) continue;
            T p = r[i];
#pragma unroll
            for (u32 l = 0; l < STEPS; ++l) p += (T)b.of[l * STEPS + i] * before[l];
            v.p[i][row] = p;
            sum += (T)a.of[i] * p;
        }
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
