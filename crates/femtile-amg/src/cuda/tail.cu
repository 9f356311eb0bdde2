// The levels of a V cycle that have few rows, in one launch.
//
// As in products with few rows, some lanes take a row; blocks wait for each other between steps.
#include "lanes.cuh"

const u32 THREADS = 512;
const u32 LEVELS = FEMTILE_LEVELS;
// Steps of the smoother.
const u32 DEGREE = FEMTILE_DEGREE;

struct Level {
    Rows a;
    // From the level above, and from the one below.
    Rows restriction, prolongation;
    const T* inverse_diagonal;
    T* b;
    // The iterate in the end, and room for another one.
    T* x;
    T* next;
    // None where no step reads the one before.
    T* direction;
    double alpha[DEGREE], beta[DEGREE];
};

struct Tail {
    // The residual of the level above the first one.
    const T* above;
    Level levels[LEVELS];
    // The coarsest level.
    Rows restriction, inverse;
    T* b;
    T* x;
};

// Waits for all blocks of the grid, which are on the GPU at the same time; what they wrote before is then visible. Their number
// is a power of two, so that the count of arrivals may wrap around.
__device__ inline void grid_barrier(u32* arrived) {
    __syncthreads();
#if !defined(FEMTILE_EMULATED)
    if (gridDim.x == 1) return;
    if (threadIdx.x == 0) {
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        const u32 last = (atomicAdd(arrived, 1u) | (gridDim.x - 1)) + 1;
        u32 now;
        do {
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
        } while ((int)(now - last) < 0);
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
    // A vote is a barrier as well.
    __syncthreads_or(0);
#endif
}

// Calls `act` for each row of a with its product with x.
template <typename F>
__device__ inline void for_rows(const Rows& a, const T* x, F act) {
    const u64 at_once = gridDim.x * (u64)(THREADS / LANES);
    for (u64 first = 0; first < a.n; first += at_once) {
        const u64 row = first + row_of_lanes();
        const Range range = entries(a.offsets, row, a.n);
        T sum = 0;
#pragma unroll 4
        for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) sum += a.values[e] * x[a.columns[e]];
        sum = lanes_sum(sum);
        if (row < a.n && lane_of_row() == 0) act(row, sum);
    }
}

// A step of the smoother from x to next.
__device__ inline void relax(const Level& level, const T* x, T* next, u32 step) {
    const T alpha = (T)level.alpha[step], beta = (T)level.beta[step];
    for_rows(level.a, x, [&](u64 row, T y) {
        T change = alpha * (level.inverse_diagonal[row] * (level.b[row] - y));
        if (beta != 0) change += beta * level.direction[row];
        if (level.direction != 0) level.direction[row] = change;
        next[row] = x[row] + change;
    });
}

extern "C" __global__ void __launch_bounds__(THREADS) amg_tail(u32* arrived, Tail tail) {
    // Steps alternate between two arrays; an odd number of them ends in x.
    const T* above = tail.above;
#pragma unroll
    for (u32 l = 0; l < LEVELS; ++l) {
        const Level& level = tail.levels[l];
        const T alpha = (T)level.alpha[0];
        for_rows(level.restriction, above, [&](u64 row, T b) {
            const T step = alpha * (level.inverse_diagonal[row] * b);
            level.b[row] = b;
            level.next[row] = step;
            if (level.direction != 0) level.direction[row] = step;
        });
        grid_barrier(arrived);
#pragma unroll
        for (u32 step = 1; step < DEGREE; ++step) {
            const bool is_odd = step % 2 == 1;
            relax(level, is_odd ? level.next : level.x, is_odd ? level.x : level.next, step);
            grid_barrier(arrived);
        }
        const bool is_odd = DEGREE % 2 == 1;
        T* const residual = is_odd ? level.x : level.next;
        for_rows(level.a, is_odd ? level.next : level.x, [&](u64 row, T y) { residual[row] = level.b[row] - y; });
        grid_barrier(arrived);
        above = residual;
    }
    for_rows(tail.restriction, above, [&](u64 row, T b) { tail.b[row] = b; });
    grid_barrier(arrived);
    for_rows(tail.inverse, tail.b, [&](u64 row, T x) { tail.x[row] = x; });
    const T* below = tail.x;
#pragma unroll
    for (u32 above_coarsest = 1; above_coarsest <= LEVELS; ++above_coarsest) {
        const Level& level = tail.levels[LEVELS - above_coarsest];
        T* const x = DEGREE % 2 == 1 ? level.next : level.x;
        grid_barrier(arrived);
        for_rows(level.prolongation, below, [&](u64 row, T change) { x[row] += change; });
        grid_barrier(arrived);
#pragma unroll
        for (u32 step = 0; step < DEGREE; ++step) {
            const bool is_in_x = (step + DEGREE) % 2 == 0;
            relax(level, is_in_x ? level.x : level.next, is_in_x ? level.next : level.x, step);
            if (step + 1 < DEGREE) grid_barrier(arrived);
        }
        below = level.x;
    }
}
