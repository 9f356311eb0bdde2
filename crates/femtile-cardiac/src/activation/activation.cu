// Activation maps: crossings of potentials within a step.
#include "femtile.cuh"

// Records crossings from `previous` to `v`, then previous = v; a thread takes a point.
extern "C" __global__ void activation_record(
    double* previous, double* first, double* last, double* peak, double* repolarisation, double* duration,
    const double* v, double threshold, double rest, double remaining, double begin, double length, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double old = previous[i], now = v[i];
    previous[i] = now;
    if (old < threshold && now >= threshold) {
        const double time = begin + length * ((threshold - old) / (now - old));
        last[i] = time;
        peak[i] = now;
        if (first[i] != first[i]) first[i] = time;
        return;
    }
    const double highest = peak[i];
    if (now > highest) {
        peak[i] = now;
        return;
    }
    const double level = rest + remaining * (highest - rest);
    if (old >= level && now < level && last[i] == last[i]) {
        const double time = begin + length * ((level - old) / (now - old));
        repolarisation[i] = time;
        duration[i] = time - last[i];
    }
}
