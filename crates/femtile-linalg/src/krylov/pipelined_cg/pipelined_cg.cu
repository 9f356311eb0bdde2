// The pass of pipelined conjugate gradients on a GPU.
#include "femtile.cuh"
#include "several_sums.cuh"

// Kinds of preconditioners.
#define IDENTITY 0
#define DIAGONAL 1
#define GENERAL 2

// What a kind does not need is null.
struct Vectors {
    T *x, *r, *w, *p, *s, *z, *m, *u, *q;
    const T *n, *inverse_diagonal;
};

// All vectors move one step on; sums r.r, r.u and w.u.
extern "C" __global__ void pipelined_cg_update(
    double* sums, double* partials, u32* counter, Vectors v, T alpha, T beta, u64 n_rows) {
    double of_thread[3] = {};
    for (u64 row = first_row(); row < n_rows; row += row_stride()) {
        T r = v.r[row], w = v.w[row];
        const T s = w + beta * v.s[row], z = v.n[row] + beta * v.z[row];
#if FEMTILE_KIND == IDENTITY
        T u = r;
#elif FEMTILE_KIND == DIAGONAL
        const T d = v.inverse_diagonal[row];
        T u = d * r;
#else
        T u = v.u[row];
        const T q = v.m[row] + beta * v.q[row];
#endif
        const T p = u + beta * v.p[row];
        v.x[row] += alpha * p;
        r -= alpha * s;
        w -= alpha * z;
#if FEMTILE_KIND == IDENTITY
        u = r;
#elif FEMTILE_KIND == DIAGONAL
        u = d * r;
        v.m[row] = d * w;
#else
        u -= alpha * q;
        v.u[row] = u;
        v.q[row] = q;
#endif
        v.p[row] = p;
        v.s[row] = s;
        v.z[row] = z;
        v.r[row] = r;
        v.w[row] = w;
        of_thread[0] += (double)r * r;
        of_thread[1] += (double)r * u;
        of_thread[2] += (double)w * u;
    }
    sums_over_blocks(sums, partials, counter, of_thread);
}
