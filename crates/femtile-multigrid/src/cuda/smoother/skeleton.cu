// The multiplicative Schwarz smoother on vertex patches of 2 x 2 x 2 equal cells of one colour, with disjoint inner nodes:
//   x_i = A_ii^-1 (b_i - A_ib x_b),
// where x_b are values on the surface of a patch. Old inner values do not enter, and surfaces lie between cells; so no
// patch reads nodes inside a cell, and only the last patch with a cell writes them. The others write the three planes
// between their cells.
//
// Surface values are made mass-orthogonal to the inner modes along each axis. They then couple through the stiffness
// along one axis only, face by face:
//   (l_i + l_j + l_l) x_ijl = b_ijl - q_i^s F_jl^s - q_j^s F_il^s - q_l^s F_ij^s
// in modes, F the modes of a face with its edges. Even modes take the sum of opposite faces, odd modes the difference.
//
// A team of threads processes a patch, a thread per line.
#include "femtile.cuh"
#include "reciprocal.cuh"
#include "modes.cuh"
#include "colour.cuh"

// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
static_assert(TEAM >= N * N && TEAM >= 3 * N, "a thread has a line of the inside or of three planes");

// Entry (x, y, z) is at x + ROW y + LAYER z in shared memory; the strides have the fewest bank conflicts.
const u32 ROW = FEMTILE_ROW, LAYER = FEMTILE_LAYER, TENSOR = (N - 1) * (ROW + LAYER) + N;

// Lines on faces, in modes along one axis: [x0, x1, y0, y1, z0, z1][M][N]; and lines of x0 and x1 along y in the middle
// of z.
const u32 FACE = M * N, SURFACE_LINES = 6 * M + 2;
// Modes of opposite faces, sum and difference: [x+, x-, y+, y-, z+, z-][N][N].
const u32 PLANE = N * N, FACE_LINES = 6 * N;
const u32 TEAM_VALUES = TENSOR + SURFACE_LINES * N + 6 * PLANE;

// Positions of the nodes of a surface line, relative to the lowest corner.
struct SurfaceLine {
    u64 begin, stride;

    __device__ inline SurfaceLine(const Colour& colour, u32 line) {
        const u32 face = line / M, at = line % M, axis = face / 2;
        const u64 end = 2 * K * (u64)(face % 2);
        if (axis == 0) begin = end + at * colour.row;
        if (axis == 1) begin = end * colour.row + at;
        if (axis == 2) begin = end * colour.layer + at;
        if (axis == 3) begin = 2 * K * (u64)at + K * colour.layer;
        stride = axis < 2 ? colour.layer : colour.row;
    }
};

// Solves on a patch; `own` is the index of the thread in its team, `values` the shared memory of the team.
__device__ inline void solve(
    T* x, const T* b, const T* modes, const Colour& colour, const Patch& patch, T* values, u32 own, bool is_active) {
    const bool is_last = FEMTILE_WHOLE || patch.is_last(colour);
    const u64 lowest = patch.first(colour);
    T* const surface = values + TENSOR;
    T* const faces = surface + SURFACE_LINES * N;
    T* const corner = x + lowest;
    const u32 p = own % N, q = own / N;
    const bool has_line = is_active && q < N;

    T line[N];
    const T* const of_b = b + lowest + (p + 1) + (q + 1) * colour.row + colour.layer;
    if (has_line) load_line(line, of_b, colour.layer);
    for (u32 i = own; is_active && i < SURFACE_LINES; i += TEAM) {
        const SurfaceLine of_surface(colour, i);
        T nodes[M], along[N];
        load_line(nodes, corner + of_surface.begin, of_surface.stride);
        to_modes(along, nodes);
        store_line(surface + i * N, along, 1);
    }
    if (has_line) {
        test_modes(line);
        store_line(values + p + ROW * q, line, LAYER);
    }
    __syncthreads();

    if (has_line) {
        T* const along_y = values + p + LAYER * q;
        load_line(line, along_y, ROW);
        test_modes(line);
        store_line(along_y, line, ROW);
    }
    for (u32 i = own; is_active && i < FACE_LINES; i += TEAM) {
        const u32 pair = i / N, at = i % N;
        const T sign = pair % 2 == 0 ? (T)1 : (T)-1;
        const T* const from = surface + pair / 2 * (2 * FACE) + at;
        T nodes[M], along[N];
#pragma unroll
        for (u32 j = 0; j < M; ++j) nodes[j] = from[j * N] + sign * from[FACE + j * N];
        to_modes(along, nodes);
        store_line(faces + pair * PLANE + at, along, N);
    }
    __syncthreads();

    if (has_line) {
        // p and q are mode numbers along y and z here.
        const T scale_x = (T)colour.scales[0], scale_y = (T)colour.scales[1], scale_z = (T)colour.scales[2];
        const T of_y = scale_y * __ldg(modes + N + p), of_z = scale_z * __ldg(modes + N + q);
        const T rest = scale_y * __ldg(modes + p) + scale_z * __ldg(modes + q);
        T *const along_x = values + ROW * p + LAYER * q, *const own_face = faces + p * N + q;
        const T *const face_y = faces + (p < EVEN ? 2 : 3) * PLANE + q;
        const T *const face_z = faces + (q < EVEN ? 4 : 5) * PLANE + p;
        const T sum = own_face[0], difference = own_face[PLANE];
        load_line(line, along_x, 1);
        test_modes(line);
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            const T of_x = i < EVEN ? Q_MODES[i] * sum : Q_MODES[i] * difference;
            line[i] -= scale_x * of_x + of_y * face_y[i * N] + of_z * face_z[i * N];
            line[i] *= reciprocal(scale_x * LAMBDA[i] + rest);
        }
        if (is_last) {
            to_nodes(line, sum, difference);
        } else {
            own_face[0] = middle_node(line, 1, sum);
        }
        store_line(along_x, line, 1);
    }
    __syncthreads();

    // The line of a thread in the result: of all inner nodes along z, or of the planes x, y and z along z, z and y. End
    // values are read early to hide latency.
    const u32 plane = own / N, at = own % N;
    const bool is_whole = has_line && is_last, is_plane = is_active && !is_last && plane < 3;
    const u64 first = is_whole ? (p + 1) + (q + 1) * colour.row
        : plane == 0           ? K + (at + 1) * colour.row
        : plane == 1           ? (at + 1) + K * colour.row
                               : (at + 1) + K * colour.layer;
    const u64 stride = is_plane && plane == 2 ? colour.row : colour.layer;
    T begin = 0, end = 0;
    if (is_whole || is_plane) {
        begin = corner[first];
        end = corner[first + 2 * K * stride];
    }
    if (is_whole) {
        T *const along_y = values + p + LAYER * q, *const ends = surface + 2 * FACE + (p + 1) * N + q;
        load_line(line, along_y, ROW);
        to_nodes(line, ends[0] + ends[FACE], ends[0] - ends[FACE]);
        store_line(along_y, line, ROW);
    } else if (has_line) {
        T *const face_y = faces + 2 * PLANE + p * N + q, *const face_z = face_y + 2 * PLANE;
        *face_y = middle_node(values + p + LAYER * q, ROW, *face_y);
        *face_z = middle_node(values + p + ROW * q, LAYER, *face_z);
    }
    __syncthreads();

    if (is_whole) {
        load_line(line, values + p + ROW * q, LAYER);
        to_nodes(line, begin + end, begin - end);
        store_line(corner + first + stride, line, stride);
    }
    // Planes along their first axis, y, x and x.
    T* const modes_of_plane = faces + plane * (2 * PLANE);
    if (is_plane) {
        const T* const ends = plane == 0 ? surface + 2 * FACE + K * N + at
            : plane == 1                 ? surface + K * N + at
                                         : surface + 6 * FACE + at;
        const T low = ends[0], high = ends[plane == 2 ? N : FACE];
        load_line(line, modes_of_plane + at, N);
        to_nodes(line, low + high, low - high);
        store_line(modes_of_plane + at, line, N);
    }
    __syncthreads();

    // Values common to two planes are written by the first of them.
    if (is_plane && (plane == 0 || at != MIDDLE)) {
        load_line(line, modes_of_plane + at * N, 1);
        to_nodes(line, begin + end, begin - end);
#pragma unroll
        for (u32 j = 0; j < N; ++j) {
            if (plane < 2 || j != MIDDLE) corner[first + (j + 1) * stride] = line[j];
        }
    }
}

// A team processes a patch.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS)
    vertex_patch_skeleton(T* x, const T* b, const T* modes, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool is_active = team < TEAMS && number < colour.count();
    const Patch patch(colour, is_active ? number : 0);
    solve(x, b, modes, colour, patch, shared + (is_active ? team : 0) * TEAM_VALUES, own, is_active);
}
