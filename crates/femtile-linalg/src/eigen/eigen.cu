// Products of sets of vectors on a GPU. A set is a table of the addresses of its vectors, each of n numbers.
#include "femtile.cuh"

// Side of a tile of X^T Y; rows of the vectors that a block has in shared memory at once.
const u32 TILE = 32;
const u32 ROWS = 32;
// A thread has a square of OWN x OWN products, of the rows of its group.
const u32 OWN = 4;
const u32 OF_GROUP = (TILE / OWN) * (TILE / OWN);
const u32 GROUPS = FEMTILE_THREADS / OF_GROUP;
// Odd, so that a column of the room meets all banks.
const u32 STRIDE = ROWS + 1;

__device__ inline const double* vector_of(const u64* table, u32 i) { return (const double*)table[i]; }

// Puts ROWS rows of TILE vectors into shared memory, zeros beyond the vectors and the rows.
__device__ inline void load(double* room, const u64* table, u32 first, u32 n_vectors, u64 row, u64 n) {
    for (u32 k = threadIdx.x; k < TILE * ROWS; k += FEMTILE_THREADS) {
        const u32 i = k / ROWS, r = k % ROWS;
        const bool is_there = first + i < n_vectors && row + r < n;
        room[i * STRIDE + r] = is_there ? vector_of(table, first + i)[row + r] : 0.0;
    }
}

// The part of X^T Y of the rows of this block: block (b, i, j) has tile (i, j) of the rows of chunk b. `partials` holds the
// n_x by n_y products of each chunk.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) eigen_gram(
    double* partials, const u64* x, u32 n_x, const u64* y, u32 n_y, u64 rows_of_chunk, u64 n) {
    FEMTILE_SHARED double of_x[TILE * STRIDE];
    FEMTILE_SHARED double of_y[TILE * STRIDE];
    const u32 group = threadIdx.x / OF_GROUP, own = threadIdx.x % OF_GROUP;
    // Interleaved: the products of one thread are TILE / OWN apart.
    const u32 i0 = own / (TILE / OWN), j0 = own % (TILE / OWN);
    const u32 first_x = blockIdx.y * TILE, first_y = blockIdx.z * TILE;
    const u64 begin = blockIdx.x * rows_of_chunk;
    const u64 end = begin + rows_of_chunk < n ? begin + rows_of_chunk : n;
    double sums[OWN][OWN] = {};
    for (u64 row = begin; row < end; row += ROWS) {
        load(of_x, x, first_x, n_x, row, end);
        load(of_y, y, first_y, n_y, row, end);
        __syncthreads();
        for (u32 r = group; r < ROWS; r += GROUPS) {
            double a[OWN], b[OWN];
#pragma unroll
            for (u32 k = 0; k < OWN; ++k) {
                a[k] = of_x[(i0 + k * (TILE / OWN)) * STRIDE + r];
                b[k] = of_y[(j0 + k * (TILE / OWN)) * STRIDE + r];
            }
#pragma unroll
            for (u32 k = 0; k < OWN; ++k) {
#pragma unroll
                for (u32 l = 0; l < OWN; ++l) sums[k][l] += a[k] * b[l];
            }
        }
        __syncthreads();
    }
    // The groups add one after another: the order of the sums is that of the rows of a thread, then of the groups.
    for (u32 g = 0; g < GROUPS; ++g) {
        if (group == g) {
#pragma unroll
            for (u32 k = 0; k < OWN; ++k) {
#pragma unroll
                for (u32 l = 0; l < OWN; ++l) {
                    double& sum = of_x[(i0 + k * (TILE / OWN)) * STRIDE + j0 + l * (TILE / OWN)];
                    sum = g == 0 ? sums[k][l] : sum + sums[k][l];
                }
            }
        }
        __syncthreads();
    }
    for (u32 k = threadIdx.x; k < TILE * TILE; k += FEMTILE_THREADS) {
        const u32 i = k / TILE, j = k % TILE;
        if (first_x + i < n_x && first_y + j < n_y) {
            partials[((u64)blockIdx.x * n_x + first_x + i) * n_y + first_y + j] = of_x[i * STRIDE + j];
        }
    }
}

// The sum of the parts of all chunks, a thread for each product.
extern "C" __global__ void eigen_sums(double* sums, const double* partials, u32 n_sums, u32 n_chunks) {
    const u32 s = blockIdx.x * FEMTILE_THREADS + threadIdx.x;
    if (s >= n_sums) return;
    double sum = 0.0;
    for (u32 b = 0; b < n_chunks; ++b) sum += partials[(u64)b * n_sums + s];
    sums[s] = sum;
}

// Columns of X C that a thread computes of one row.
const u32 COLUMNS = 32;

// Y = X C by rows of C, COLUMNS columns of it for each blockIdx.y, a thread for each row of the vectors.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) eigen_multiply(
    const u64* y, const u64* x, u32 n_x, const double* c, u32 n_y, u64 n) {
    FEMTILE_SHARED double factors[ROWS * COLUMNS];
    const u64 row = (u64)blockIdx.x * FEMTILE_THREADS + threadIdx.x;
    const u32 first = blockIdx.y * COLUMNS;
    double sums[COLUMNS] = {};
    for (u32 begin = 0; begin < n_x; begin += ROWS) {
        __syncthreads();
        for (u32 k = threadIdx.x; k < ROWS * COLUMNS; k += FEMTILE_THREADS) {
            const u32 i = begin + k / COLUMNS, j = first + k % COLUMNS;
            factors[k] = i < n_x && j < n_y ? c[(u64)i * n_y + j] : 0.0;
        }
        __syncthreads();
        const u32 n_here = n_x - begin < ROWS ? n_x - begin : ROWS;
        if (row < n) {
            for (u32 i = 0; i < n_here; ++i) {
                const double of_x = vector_of(x, begin + i)[row];
#pragma unroll
                for (u32 j = 0; j < COLUMNS; ++j) sums[j] += of_x * factors[i * COLUMNS + j];
            }
        }
    }
    if (row >= n) return;
#pragma unroll
    for (u32 j = 0; j < COLUMNS; ++j) {
        if (first + j < n_y) ((double*)y[first + j])[row] = sums[j];
    }
}
