// The operator's data, and where nodes lie; what follows is generated for each operator.

struct Operator {
    u64 nodes[3];
    double lower[3], upper[3], spacing[3];
    // l and w of the first, the inner and the last nodes of axes on which they do not vary.
    double constant[3][3][2];
    double diffusion[3], convection[3], mixed[3];
    double reaction, source;
    // What makes l and w of the bands that are read.
    double factor;
    const T* lower_band[3];
    const T* upper_band[3];
    const T* mixed_array[3];
    const T* reaction_array;
    const T* source_array;
};

__device__ __forceinline__ double coordinate(const Operator& o, u32 axis, u32 i) {
    return o.lower[axis] + i * o.spacing[axis];
}

// Halfway between the nodes i - 1 and i, never outside of a box with sides there.
__device__ __forceinline__ double half_coordinate(const Operator& o, u32 axis, u32 i, bool is_ring) {
    const double middle = o.lower[axis] + (i - 0.5) * o.spacing[axis];
    return is_ring ? middle : fmin(fmax(middle, o.lower[axis]), o.upper[axis]);
}

// l and w where they do not vary.
__device__ __forceinline__ void constant_couplings(const Operator& o, u32 axis, u32 i, double& l, double& w) {
    const bool first = i == 0, last = i + 1 == o.nodes[axis];
    l = first ? o.constant[axis][0][0] : last ? o.constant[axis][2][0] : o.constant[axis][1][0];
    w = first ? o.constant[axis][0][1] : last ? o.constant[axis][2][1] : o.constant[axis][1][1];
}

// l and w from D half a spacing before and behind a node that is not held, and c at it: Operator::couplings.
__device__ __forceinline__ void varying_couplings(
    const Operator& o, u32 axis, u32 i, bool is_ring, double before, double behind, double c, double& l, double& w) {
    const double h = o.spacing[axis], square = 1.0 / (h * h), half = 0.5 / h;
    const bool first = !is_ring && i == 0, last = !is_ring && i + 1 == o.nodes[axis];
    l = first ? 0.0 : last ? 2.0 * (before * square - c * half) : before * square - c * half;
    w = last ? 0.0 : first ? 2.0 * (behind * square + c * half) : behind * square + c * half;
}
