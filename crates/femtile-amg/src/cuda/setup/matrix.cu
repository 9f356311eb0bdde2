// What is asked of the matrix of a level: its diagonal, whether it is sound, where its spectrum ends.
//
// Sums are those of the blocks of a grid of fixed size, which every block of the next kernel adds up in one order.
#include "lanes.cuh"

// A number in [-1, 1) from an index.
__device__ inline double unit(u64 i, u32 stream) {
    return (double)(mixed(i ^ (u64)stream << 56) >> 11) * (1.0 / 4503599627370496.0) - 1.0;
}

// Sum of what the blocks of a grid have left, known to all threads of this one. It may be called again at once: the sum
// has barriers of its own.
__device__ inline double total(const double* partials, u32 n) {
    FEMTILE_SHARED double known;
    const double sum = sum_partials(partials, n);
    if (threadIdx.x == 0) known = sum;
    __syncthreads();
    return known;
}

// The diagonal; marks of rows whose positive entries beside the diagonal exceed `share` times that, of those that are `marked`
// or of all; the first row whose own entry is not above `smallest` or that has one which is not finite; the length of the
// longest row and the number of marks; and of each block of the grid its part of x·Ay − y·Ax and of the squares of all entries.
extern "C" __global__ void amg_diagonal(
    T* diagonal, u32* is_doubtful, u32* bad, u32* counts, double* partials, const u32* marked, Rows a, T share, T smallest) {
    const u64 rows_of_grid = gridDim.x * (u64)blockDim.x / LANES;
    const u32 place = threadIdx.x % WARP / LANES;
    double difference = 0, squares = 0;
    u32 length = 0, n_doubtful = 0;
    for (u64 first = row_of_lanes() - place; first < a.n; first += rows_of_grid) {
        const u64 row = first + place;
        const Range range = entries(a.offsets, row, a.n);
        T own = 0, sum = 0, positive = 0;
        double ax = 0, ay = 0;
        for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
            const u32 column = a.columns[e];
            const T value = a.values[e];
            if (column == row) {
                own = value;
            } else if (value > 0) {
                positive += value;
            }
            sum += value;
            ax += (double)value * unit(column, 1);
            ay += (double)value * unit(column, 2);
            squares += (double)value * (double)value;
        }
        own = lanes_sum(own);
        sum = lanes_sum(sum);
        positive = lanes_sum(positive);
        ax = lanes_sum(ax);
        ay = lanes_sum(ay);
        if (row < a.n && lane_of_row() == 0) {
            diagonal[row] = own;
            if (!(own > smallest && sum - sum == 0)) atomicMin(bad, (u32)row);
            difference += unit(row, 1) * ay - unit(row, 2) * ax;
            length = max(length, range.end - range.begin);
            const bool is_marked = (marked == 0 || marked[row] != 0) && positive > share * own;
            is_doubtful[row] = is_marked;
            n_doubtful += is_marked;
        }
    }
    if (lane_of_row() == 0) atomicMax(&counts[0], length);
    if (n_doubtful > 0) atomicAdd(&counts[1], n_doubtful);
    difference = block_sum(difference);
    squares = block_sum(squares);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = difference;
        partials[gridDim.x + blockIdx.x] = squares;
    }
}

// A vector without structure over the roots of D, and the squares of its length in the scalar product with D: every row has
// about the same part of it.
extern "C" __global__ void amg_lanczos_start(T* v, double* squares, const T* diagonal, u64 n) {
    double sum = 0;
    for (u64 i = thread_of_grid(); i < n; i += gridDim.x * (u64)blockDim.x) {
        const u64 bits = mixed(i);
        const double size = 0.5 + (double)(bits >> 40) * (1.0 / 16777216.0);
        const T value = (T)(((bits >> 39 & 1) == 0 ? size : -size) / sqrt((double)diagonal[i]));
        v[i] = value;
        sum += (double)value * (double)value * (double)diagonal[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

// w = D^-1 A v / |v| - |v| w / |w|, the last term but in step 0, and v·A v / |v|^2 by blocks.
//
// `squares` has those of the lengths of the start and of each step, a number for each block of the grid.
extern "C" __global__ void amg_lanczos_product(
    T* w, double* products, const double* squares, const T* v, const T* diagonal, Rows a, u32 step) {
    const u32 n_partials = gridDim.x;
    const double length = sqrt(total(squares + step * (u64)n_partials, n_partials));
    const double before = step > 0 ? sqrt(total(squares + (step - 1) * (u64)n_partials, n_partials)) : 1.0;
    const double scale = 1.0 / length;
    const T beta = (T)(length / before);
    const u64 rows_of_grid = gridDim.x * (u64)blockDim.x / LANES;
    const u32 place = threadIdx.x % WARP / LANES;
    double dot = 0;
    for (u64 first = row_of_lanes() - place; first < a.n; first += rows_of_grid) {
        const u64 row = first + place;
        const Range range = entries(a.offsets, row, a.n);
        T sum = 0;
        for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) {
            sum += a.values[e] * v[a.columns[e]];
        }
        sum = lanes_sum(sum);
        if (row < a.n && lane_of_row() == 0) {
            const T product = (T)scale * sum;
            dot += scale * (double)v[row] * (double)product;
            w[row] = product / diagonal[row] - (step > 0 ? beta * w[row] : 0);
        }
    }
    dot = block_sum(dot);
    if (threadIdx.x == 0) products[step * (u64)n_partials + blockIdx.x] = dot;
}

// w -= alpha v / |v| with alpha = v·A v / |v|^2, and the squares of its length; the first block notes alpha and |v|.
extern "C" __global__ void amg_lanczos_subtract(
    T* w, double* squares, double* notes, const double* products, const T* v, const T* diagonal, u64 n, u32 step) {
    const u32 n_partials = gridDim.x;
    const double alpha = total(products + step * (u64)n_partials, n_partials);
    const double length = sqrt(total(squares + step * (u64)n_partials, n_partials));
    const T factor = (T)(alpha / length);
    double sum = 0;
    for (u64 i = thread_of_grid(); i < n; i += gridDim.x * (u64)blockDim.x) {
        const T value = w[i] - factor * v[i];
        w[i] = value;
        sum += (double)value * (double)value * (double)diagonal[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        squares[(step + 1) * (u64)n_partials + blockIdx.x] = sum;
        if (blockIdx.x == 0) {
            notes[2 * step] = alpha;
            notes[2 * step + 1] = length;
        }
    }
}

// The reciprocals of the diagonal, raised to `bound` times the absolute sum of the row where that is more.
extern "C" __global__ void amg_raise(T* inverse, const T* diagonal, Rows a, double bound) {
    const u64 row = row_of_lanes();
    const Range range = entries(a.offsets, row, a.n);
    double sum = 0;
    for (u32 e = range.begin + lane_of_row(); e < range.end; e += LANES) sum += fabs((double)a.values[e]);
    sum = lanes_sum(sum);
    if (row >= a.n || lane_of_row() != 0) return;
    const T own = diagonal[row], least = (T)(bound * sum);
    inverse[row] = 1 / (least > own ? least : own);
}
