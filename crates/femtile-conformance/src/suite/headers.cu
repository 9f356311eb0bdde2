// Kernels that use the shared headers, for their tests.
#include "femtile.cuh"
#include "copy.cuh"
#include "mma.cuh"
#include "tile.cuh"

// c += a b by one warp; a: 16 × K by rows, b: K × 8 by rows, c: 16 × 8 by rows.
extern "C" __global__ void multiply(double* c, const double* a, const double* b) {
    const u32 K = FEMTILE_K, lane = threadIdx.x, g = lane / 4, t = lane % 4;
    double of_a[K / 2], of_b[K / 4], of_c[4];
    for (u32 i = 0; i < K / 2; ++i) of_a[i] = a[(g + 8 * (i % 2)) * K + t + 4 * (i / 2)];
    for (u32 i = 0; i < K / 4; ++i) of_b[i] = b[(t + 4 * i) * 8 + g];
    for (u32 i = 0; i < 4; ++i) of_c[i] = c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
    mma_f64(of_c, of_a, of_b);
    for (u32 i = 0; i < 4; ++i) c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = of_c[i];
}

// y is the transpose of x, both 32 × 32, by one block of 32 × 8 threads.
extern "C" __global__ void transpose(double* y, const double* x) {
    typedef PaddedTile<32, 32> Tile;
    FEMTILE_SHARED double tile[Tile::SIZE];
    for (u32 row = threadIdx.y; row < 32; row += 8) {
        tile[Tile::place(row, threadIdx.x)] = x[32 * row + threadIdx.x];
    }
    __syncthreads();
    for (u32 row = threadIdx.y; row < 32; row += 8) {
        y[32 * row + threadIdx.x] = tile[Tile::place(threadIdx.x, row)];
    }
}

// y_i = x_i + 2 x_j, where j is i backwards in its tile of 64; the next tile is under way while one is summed.
extern "C" __global__ void stage(double* y, const double* x, u32 n_tiles) {
    FEMTILE_SHARED double tiles[2][64];
    const u32 i = threadIdx.x;
    copy_async(&tiles[0][i], &x[i]);
    commit_copies();
    for (u32 tile = 0; tile < n_tiles; ++tile) {
        if (tile + 1 < n_tiles) copy_async(&tiles[(tile + 1) % 2][i], &x[64 * (tile + 1) + i]);
        commit_copies();
        wait_for_copies<1>();
        __syncthreads();
        y[64 * tile + i] = tiles[tile % 2][i] + 2.0 * tiles[tile % 2][63 - i];
        __syncthreads();
    }
}
