// The correction from the next level.
#include "lanes.cuh"

// x += P e; some lanes take a row.
extern "C" __global__ void amg_correct(T* x, const T* e, Rows p) {
    const u64 row = row_of_lanes();
    const Range range = entries(p.offsets, row, p.n);
    T sum = 0;
    for (u32 i = range.begin + lane_of_row(); i < range.end; i += LANES) sum += p.values[i] * e[p.columns[i]];
    sum = lanes_sum(sum);
    if (row < p.n && lane_of_row() == 0) x[row] += sum;
}
