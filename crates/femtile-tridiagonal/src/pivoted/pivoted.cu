// Elimination with scaled partial pivoting between a row and the next, a thread a system.
//
// Upper triangular rows are kept as their diagonal and two bands in scratch, the modified right side in
// u. Reads 4 values a row and writes one; 4 values of scratch and u go forth and back.
#include "equation.cuh"
#include "femtile.cuh"
#include "reciprocal.cuh"

__device__ inline T larger(T x, T y) { return fabs(x) > fabs(y) ? fabs(x) : fabs(y); }

extern "C" __global__ void tridiagonal_pivoted(
    T* u, const T* d, const T* a, const T* b, const T* c, Lines lines, u64* status, Bands bands, T* scratch) {
    const u64 thread = blockIdx.x * (u64)blockDim.x + threadIdx.x, n_threads = gridDim.x * (u64)blockDim.x;
    const u32 length = (u32)lines.length;
    T* const diagonals = scratch + thread;
    T* const firsts = diagonals + lines.length * n_threads;
    T* const seconds = firsts + lines.length * n_threads;
    for (u64 number = thread; number < lines.n_lines; number += n_threads) {
        const Line line(d, a, b, c, lines, (u32)number);
        T* const to = u + lines.start((u32)number);
        const Equation top = line.equation(bands, 0);
        // The remaining row: its pivot, the next entry, its right side, and its size before elimination.
        T pivot = top.diagonal, next = top.upper, value = top.value, size = larger(top.diagonal, top.upper);
        u32 bad = SOUND;
        for (u32 row = 0; row < length; ++row) {
            T diagonal = pivot, first = next, second = (T)0, right = value;
            if (row + 1 < length) {
                const Equation below = line.equation(bands, row + 1);
                const T size_below = larger(larger(below.lower, below.diagonal), below.upper);
                if (fabs(below.lower) * size > fabs(pivot) * size_below) {
                    const T factor = pivot / below.lower;
                    diagonal = below.lower;
                    first = below.diagonal;
                    second = below.upper;
                    right = below.value;
                    pivot = next - factor * below.diagonal;
                    next = -(factor * below.upper);
                    value = value - factor * below.value;
                } else {
                    const T factor = below.lower / pivot;
                    pivot = below.diagonal - factor * next;
                    next = below.upper;
                    value = below.value - factor * value;
                    size = size_below;
                }
            }
            if (bad == SOUND && !(fabs(diagonal) > (T)0 && is_finite(diagonal) && is_finite(right))) bad = row;
            diagonals[row * n_threads] = diagonal;
            firsts[row * n_threads] = first;
            seconds[row * n_threads] = second;
            to[row * line.stride] = right;
        }
        T behind = (T)0, beyond = (T)0;
        for (u32 k = 0; k < length; ++k) {
            const u32 row = length - 1 - k;
            T solved = to[row * line.stride];
            if (k > 0) solved -= firsts[row * n_threads] * behind;
            if (k > 1) solved -= seconds[row * n_threads] * beyond;
            solved = bad == SOUND ? solved / diagonals[row * n_threads] : not_a_number();
            to[row * line.stride] = solved;
            beyond = behind;
            behind = solved;
        }
        if (bad != SOUND) note_failure(status, lines, number, bad);
    }
}
