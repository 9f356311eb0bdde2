// Vectors: fill, copy, axpby, combine, scale_by, components of fields, dot, sum, subtract_mean. In updates a thread takes a pack
// of 16 bytes.
#include "femtile.cuh"
#include "sums.cuh"

__device__ inline u64 own_pack() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }

// The entry behind the last whole pack that this thread takes, or n where it takes none.
__device__ inline u64 own_tail(u64 n) {
    const u64 entry = n / Pack<T>::N * Pack<T>::N + own_pack();
    return entry < n ? entry : n;
}

// x = alpha. Writes n values.
extern "C" __global__ void vector_fill(T* x, T alpha, u64 n) {
    Pack<T> all;
    for (u32 j = 0; j < Pack<T>::N; ++j) all.value[j] = alpha;
    if (own_pack() < n / Pack<T>::N) store_pack(x, own_pack(), all);
    if (const u64 i = own_tail(n); i < n) x[i] = alpha;
}

// y = x. Reads n, writes n values.
extern "C" __global__ void vector_copy(T* y, const T* x, u64 n) {
    if (own_pack() < n / Pack<T>::N) store_pack(y, own_pack(), load_pack(x, own_pack()));
    if (const u64 i = own_tail(n); i < n) y[i] = x[i];
}

// y = alpha x + beta y. Reads 2n, writes n values.
extern "C" __global__ void vector_axpby(T* y, T alpha, const T* x, T beta, u64 n) {
    if (const u64 pack = own_pack(); pack < n / Pack<T>::N) {
        const Pack<T> of_x = load_pack(x, pack);
        Pack<T> of_y = load_pack(y, pack);
        for (u32 j = 0; j < Pack<T>::N; ++j) of_y.value[j] = alpha * of_x.value[j] + beta * of_y.value[j];
        store_pack(y, pack, of_y);
    }
    if (const u64 i = own_tail(n); i < n) y[i] = alpha * x[i] + beta * y[i];
}

// Adds alpha x to a pack or an entry, where x is there.
__device__ inline void add_term(Pack<T>& sum, T alpha, const T* x, u64 pack) {
    if (!x) return;
    const Pack<T> of_x = load_pack(x, pack);
    for (u32 j = 0; j < Pack<T>::N; ++j) sum.value[j] += alpha * of_x.value[j];
}

__device__ inline void add_term(T& sum, T alpha, const T* x, u64 i) {
    if (x) sum += alpha * x[i];
}

// y = a0 x0 + a1 x1 + a2 x2 + a3 x3; null for terms that are not there. Reads up to 4n, writes n values.
extern "C" __global__ void vector_combine(
    T* y, T a0, const T* x0, T a1, const T* x1, T a2, const T* x2, T a3, const T* x3, u64 n) {
    if (const u64 pack = own_pack(); pack < n / Pack<T>::N) {
        Pack<T> sum = load_pack(x0, pack);
        for (u32 j = 0; j < Pack<T>::N; ++j) sum.value[j] *= a0;
        add_term(sum, a1, x1, pack);
        add_term(sum, a2, x2, pack);
        add_term(sum, a3, x3, pack);
        store_pack(y, pack, sum);
    }
    if (const u64 i = own_tail(n); i < n) {
        T sum = a0 * x0[i];
        add_term(sum, a1, x1, i);
        add_term(sum, a2, x2, i);
        add_term(sum, a3, x3, i);
        y[i] = sum;
    }
}

// z_i = d_i r_i. Reads 2n, writes n values.
extern "C" __global__ void vector_scale_by(T* z, const T* d, const T* r, u64 n) {
    if (const u64 pack = own_pack(); pack < n / Pack<T>::N) {
        const Pack<T> of_d = load_pack(d, pack);
        Pack<T> of_r = load_pack(r, pack);
        for (u32 j = 0; j < Pack<T>::N; ++j) of_r.value[j] *= of_d.value[j];
        store_pack(z, pack, of_r);
    }
    if (const u64 i = own_tail(n); i < n) z[i] = d[i] * r[i];
}

// y = component c of x, a field of m components. Reads and writes n values; a thread each.
extern "C" __global__ void vector_take_component(T* y, const T* x, u64 n, u64 c, u64 m) {
    if (const u64 i = own_pack(); i < n) y[i] = x[i * m + c];
}

// Component c of x = y. Reads and writes n values; a thread each.
extern "C" __global__ void vector_put_component(T* x, const T* y, u64 n, u64 c, u64 m) {
    if (const u64 i = own_pack(); i < n) x[i * m + c] = y[i];
}

// result = x.y in f64; a block takes `n_tiles` tiles. Reads 2n values.
extern "C" __global__ void vector_dot(
    double* result, double* partials, u32* counter, const T* x, const T* y, u64 n, u32 n_tiles) {
    double sum = 0.0;
    for (u32 tile = 0; tile < n_tiles; ++tile) {
        Pack<T> read_x[TILE_PACKS], read_y[TILE_PACKS];
        load_tile(read_x, x, blockIdx.x * (u64)n_tiles + tile, n);
        load_tile(read_y, y, blockIdx.x * (u64)n_tiles + tile, n);
        for (u32 k = 0; k < TILE_PACKS; ++k) {
            for (u32 j = 0; j < Pack<T>::N; ++j) {
                sum += (double)read_x[k].value[j] * (double)read_y[k].value[j];
            }
        }
    }
    if (const u64 i = tail_entry(n); i < n) sum += (double)x[i] * (double)y[i];
    sum_over_blocks(result, partials, counter, sum);
}

// result = sum of x_i in f64; a block takes `n_tiles` tiles. Reads n values.
extern "C" __global__ void vector_sum(
    double* result, double* partials, u32* counter, const T* x, u64 n, u32 n_tiles) {
    double sum = 0.0;
    for (u32 tile = 0; tile < n_tiles; ++tile) {
        Pack<T> read[TILE_PACKS];
        load_tile(read, x, blockIdx.x * (u64)n_tiles + tile, n);
        for (u32 k = 0; k < TILE_PACKS; ++k) {
            for (u32 j = 0; j < Pack<T>::N; ++j) sum += (double)read[k].value[j];
        }
    }
    if (const u64 i = tail_entry(n); i < n) sum += (double)x[i];
    sum_over_blocks(result, partials, counter, sum);
}

// x_i -= sum / n_summed, where sum is that of n_summed values, x or more. Reads and writes n values.
extern "C" __global__ void vector_subtract_mean(T* x, const double* sum, u64 n_summed, u64 n) {
    const T mean = (T)(*sum / (double)n_summed);
    if (const u64 pack = own_pack(); pack < n / Pack<T>::N) {
        Pack<T> of_x = load_pack(x, pack);
        for (u32 j = 0; j < Pack<T>::N; ++j) of_x.value[j] -= mean;
        store_pack(x, pack, of_x);
    }
    if (const u64 i = own_tail(n); i < n) x[i] -= mean;
}
