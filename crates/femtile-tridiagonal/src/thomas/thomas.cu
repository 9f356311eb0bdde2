// Elimination row by row, a thread a system: [laszlo2016], Alg. 1 with the mappings of Alg. 6 and 7.
//
// Threads take one line after the other. The modified right side goes to u, the modified upper band to scratch, an
// entry for each row and each thread; in a ring also what every row owes to the last unknown. Reads 4 values a row and
// writes one; 4 values of scratch and u go forth and back.
#include "equation.cuh"
#include "femtile.cuh"
#include "reciprocal.cuh"

// Rows whose values are asked for at once: the compiler may not move a read of d before a write of u.
const u32 GROUP = 4;
// Lines of a block in a plane of them: 32 neighbours along the fastest axis, and this many along the other.
const u32 ACROSS = 32;

// The line that this thread of block `block` takes, or none: then it is no less than the number of lines.
__device__ inline u64 line_of(u64 block, const Lines& lines) {
#if FEMTILE_PLANE
    const u64 blocks = (lines.count[0] + ACROSS - 1) / ACROSS;
    const u64 y = block % blocks * ACROSS + threadIdx.x % ACROSS;
    const u64 z = block / blocks * (blockDim.x / ACROSS) + threadIdx.x / ACROSS;
    return y < lines.count[0] ? z * lines.count[0] + y : lines.n_lines;
#else
    return block * blockDim.x + threadIdx.x;
#endif
}

__device__ inline u64 n_blocks(const Lines& lines) {
#if FEMTILE_PLANE
    const u64 deep = blockDim.x / ACROSS, rest = lines.n_lines / lines.count[0];
    return (lines.count[0] + ACROSS - 1) / ACROSS * ((rest + deep - 1) / deep);
#else
    return (lines.n_lines + blockDim.x - 1) / blockDim.x;
#endif
}

struct Scratch {
    T* c_star;
    T* q;
    u64 stride;
};

// Solves rows 0..n; in a ring that is all but the last, and q is what they owe to it. The first bad row, or SOUND.
__device__ inline u32 eliminate(T* u, const Line& line, const Bands& bands, const Scratch& scratch, u32 n) {
    T c_star = (T)0, d_star = (T)0, q = (T)0;
    u32 bad = SOUND;
    for (u32 row_0 = 0; row_0 < n; row_0 += GROUP) {
        Equation rows[GROUP];
#pragma unroll
        for (u32 g = 0; g < GROUP; ++g) {
            if (row_0 + g < n) rows[g] = line.equation(bands, row_0 + g);
        }
#pragma unroll
        for (u32 g = 0; g < GROUP; ++g) {
            const u32 row = row_0 + g;
            if (row >= n) break;
            const Equation of = rows[g];
            const T lower = row == 0 ? (T)0 : of.lower;
            const T pivot = of.diagonal - lower * c_star;
            const T r = reciprocal(pivot);
            d_star = r * (of.value - lower * d_star);
            c_star = r * of.upper;
#if FEMTILE_PERIODIC
            q = row == 0 ? r * of.lower : -(r * lower) * q;
            if (row + 1 == n) {
                q += c_star;
                c_star = (T)0;
            }
            scratch.q[row * scratch.stride] = q;
#endif
            if (bad == SOUND && !(is_sound(pivot, of.diagonal) && is_finite(c_star) && is_finite(d_star))) bad = row;
            scratch.c_star[row * scratch.stride] = c_star;
            u[row * line.stride] = d_star;
        }
    }
    return bad;
}

__device__ inline void substitute(T* u, const Line& line, const Scratch& scratch, u32 n) {
    T next = (T)0, next_q = (T)0;
    for (u32 end = n; end > 0; end -= end < GROUP ? end : GROUP) {
        T d_star[GROUP], c_star[GROUP];
#pragma unroll
        for (u32 g = 0; g < GROUP; ++g) {
            if (g >= end) break;
            d_star[g] = u[(end - 1 - g) * line.stride];
            c_star[g] = scratch.c_star[(end - 1 - g) * scratch.stride];
        }
#pragma unroll
        for (u32 g = 0; g < GROUP; ++g) {
            if (g >= end) break;
            const u32 row = end - 1 - g;
            next = row + 1 == n ? d_star[g] : d_star[g] - c_star[g] * next;
            u[row * line.stride] = next;
#if FEMTILE_PERIODIC
            const T q = scratch.q[row * scratch.stride];
            next_q = row + 1 == n ? q : q - c_star[g] * next_q;
            scratch.q[row * scratch.stride] = next_q;
#endif
        }
    }
}

#if FEMTILE_PERIODIC
// The last unknown of a ring from the rest of it, u = p - w q, which is then taken off; a row that failed, or SOUND.
__device__ inline u32 close_ring(T* u, const Line& line, const Equation& of, const Scratch& scratch, u32 n) {
    T pivot = of.diagonal, value = of.value;
    if (n == 0) {
        pivot += of.lower + of.upper;
    } else {
        pivot -= of.upper * scratch.q[0] + of.lower * scratch.q[(n - 1) * scratch.stride];
        value -= of.upper * u[0] + of.lower * u[(n - 1) * line.stride];
    }
    const T w = reciprocal(pivot) * value;
    if (!is_sound(pivot, of.diagonal) || !is_finite(w)) return n;
    for (u32 row = 0; row < n; ++row) u[row * line.stride] -= w * scratch.q[row * scratch.stride];
    u[n * line.stride] = w;
    return SOUND;
}
#endif

extern "C" __global__ void tridiagonal_thomas(
    T* u, const T* d, const T* a, const T* b, const T* c, Lines lines, u64* status, Bands bands, T* scratch) {
    const u64 thread = blockIdx.x * (u64)blockDim.x + threadIdx.x, n_threads = gridDim.x * (u64)blockDim.x;
    const Scratch own = {scratch + thread, scratch + thread + lines.length * n_threads, n_threads};
    const u64 blocks = n_blocks(lines);
    for (u64 block = blockIdx.x; block < blocks; block += gridDim.x) {
        const u64 number = line_of(block, lines);
        if (number >= lines.n_lines) continue;
        const Line line(d, a, b, c, lines, (u32)number);
        T* const to = u + lines.start((u32)number);
        const u32 n = line.length - (FEMTILE_PERIODIC ? 1 : 0);
#if FEMTILE_PERIODIC
        const Equation last = line.equation(bands, n);
#endif
        u32 bad = eliminate(to, line, bands, own, n);
        if (bad == SOUND) {
            substitute(to, line, own, n);
#if FEMTILE_PERIODIC
            bad = close_ring(to, line, last, own, n);
#endif
        }
        if (bad == SOUND) continue;
        note_failure(status, lines, number, bad);
        for (u32 row = 0; row < line.length; ++row) to[row * line.stride] = not_a_number();
    }
}
