// Linear elements: coefficients, geometry of a simplex, constrained unknowns.
#pragma once
#include "femtile.cuh"

// A tensor by rows; in two dimensions the entries of z are zero.
struct Tensor {
    double xx, xy, xz, yx, yy, yz, zx, zy, zz;
};

// A symmetric tensor.
struct Symmetric {
    double xx, yy, zz, yz, xz, xy;
};

struct Vector {
    double x, y, z;
};

// Evaluation of a coefficient: zero, constant, once per cell, or at each point of a rule.
enum Evaluated : u32 { NEVER, ONCE, BY_CELL, BY_POINT };

// The coefficients: struct Form, SIGMA, LAMBDA, SOURCE, N_POINTS, SigmaValue, SigmaMean, sigma_at, lambda_at, source_at;
// of a linearization at a function also unknown_at, reaction_slope_at, SlopeMean and sigma_slope_at.
#include "form.cuh"

const u32 CORNERS = FEMTILE_CORNERS;
const u32 DIMENSION = CORNERS - 1;
const u32 EDGES = CORNERS * DIMENSION / 2;
const bool VARIES_IN_CELLS = SIGMA == BY_POINT || LAMBDA == BY_POINT || SOURCE == BY_POINT;
const bool SIGMA_BY_CELL = SIGMA == ONCE || SIGMA == BY_CELL, LAMBDA_BY_CELL = LAMBDA == ONCE || LAMBDA == BY_CELL;
const bool SOURCE_BY_CELL = SOURCE == ONCE || SOURCE == BY_CELL;
// The column number of entries of the right side.
const u32 RIGHT_SIDE = 0xffffffffu;
// The range of measures with a finite reciprocal.
const double SMALLEST = 2.2250738585072014e-308, LARGEST = 1.7976931348623157e308;

__device__ inline bool is_finite(double value) {
    return fabs(value) <= LARGEST;
}

__device__ inline bool is_definite(double sigma) {
    return sigma > 0.0 && sigma <= LARGEST;
}

__device__ inline bool are_equal(double a, double b, double size) {
    return fabs(a - b) <= 1e-12 * size;
}

__device__ inline bool is_all_finite(double value) {
    return is_finite(value);
}

__device__ inline bool is_all_finite(const Tensor& t) {
    return is_finite(t.xx) && is_finite(t.xy) && is_finite(t.xz) && is_finite(t.yx) && is_finite(t.yy) &&
           is_finite(t.yz) && is_finite(t.zx) && is_finite(t.zy) && is_finite(t.zz);
}

// Whether the leading block is finite, symmetric to rounding, and all its leading minors are positive.
__device__ inline bool is_definite(const Tensor& t) {
    const bool is_known = is_all_finite(t);
    const double plane = fmax(fmax(fabs(t.xx), fabs(t.yy)), fmax(fabs(t.xy), fabs(t.yx)));
    const double space = fmax(fmax(fabs(t.xz), fabs(t.zx)), fmax(fmax(fabs(t.yz), fabs(t.zy)), fabs(t.zz)));
    const double size = fmax(plane, space), scale = 1.0 / size;
    const bool is_symmetric =
        are_equal(t.xy, t.yx, size) && are_equal(t.xz, t.zx, size) && are_equal(t.yz, t.zy, size);
    // Entries are scaled so that minors of very large or small tensors neither overflow nor vanish.
    const double xx = t.xx * scale, xy = t.xy * scale, xz = t.xz * scale, yx = t.yx * scale, yy = t.yy * scale;
    const double yz = t.yz * scale, zx = t.zx * scale, zy = t.zy * scale, zz = t.zz * scale;
    const double second = xx * yy - xy * yx;
    const double third = zx * (xy * yz - xz * yy) - zy * (xx * yz - xz * yx) + zz * second;
    return is_known && is_symmetric && xx > 0.0 && second > 0.0 && (DIMENSION < 3 || third > 0.0);
}

__device__ inline void add(double& mean, double weight, double sigma) {
    mean += weight * sigma;
}

__device__ inline void add(Symmetric& mean, double weight, const Tensor& t) {
    mean.xx += weight * t.xx;
    mean.yy += weight * t.yy;
    mean.zz += weight * t.zz;
    mean.yz += weight * (0.5 * (t.yz + t.zy));
    mean.xz += weight * (0.5 * (t.xz + t.zx));
    mean.xy += weight * (0.5 * (t.xy + t.yx));
}

// Adds a conductivity to a mean and records whether it is positive definite.
__device__ inline void see(SigmaMean& mean, bool& is_sound, double weight, const SigmaValue& sigma) {
    add(mean, weight, sigma);
    is_sound &= is_definite(sigma);
}

__device__ inline bool is_reaction(double lambda) {
    return is_finite(lambda) && (ANY_REACTION || lambda >= 0.0);
}

// A point of the rule: its weight, then its barycentric coordinates.
__device__ inline const double* rule_point(const Form& form, u32 number) {
    return form.constants + 5 * number;
}

// Coordinates of a point of the rule in an element.
__device__ inline Vector point_at(const double* point, const Vector (&corners)[CORNERS]) {
    Vector at = {0.0, 0.0, 0.0};
#pragma unroll
    for (u32 a = 0; a < CORNERS; ++a) {
        at.x += point[1 + a] * corners[a].x;
        at.y += point[1 + a] * corners[a].y;
        at.z += point[1 + a] * corners[a].z;
    }
    return at;
}

// The value at a point of the rule of a function with values at the corners.
__device__ inline double value_at(const double* point, const double (&u)[CORNERS]) {
    double sum = 0.0;
#pragma unroll
    for (u32 a = 0; a < CORNERS; ++a) sum += point[1 + a] * u[a];
    return sum;
}

__device__ inline Vector operator-(Vector a, Vector b) {
    return Vector{a.x - b.x, a.y - b.y, a.z - b.z};
}

__device__ inline Vector operator*(double s, Vector a) {
    return Vector{s * a.x, s * a.y, s * a.z};
}

__device__ inline Vector operator*(const Symmetric& t, Vector a) {
    return Vector{t.xx * a.x + t.xy * a.y + t.xz * a.z, t.xy * a.x + t.yy * a.y + t.yz * a.z,
                  t.xz * a.x + t.yz * a.y + t.zz * a.z};
}

__device__ inline double dot(Vector a, Vector b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

__device__ inline Vector cross(Vector a, Vector b) {
    return Vector{a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// Area vectors of the sides except the first, which is minus their sum; returns d! times the measure.
__device__ inline double area_vectors(Vector (&g)[DIMENSION], const Vector (&p)[CORNERS]) {
#if FEMTILE_CORNERS == 4
    const Vector e1 = p[1] - p[0], e2 = p[2] - p[0], e3 = p[3] - p[0];
    g[0] = cross(e2, e3);
    g[1] = cross(e3, e1);
    g[2] = cross(e1, e2);
    return fabs(dot(e1, g[0]));
#else
    const Vector e1 = p[1] - p[0], e2 = p[2] - p[0];
    g[0] = Vector{e2.y, -e2.x, 0.0};
    g[1] = Vector{-e1.y, e1.x, 0.0};
    return fabs(e1.x * g[0].x + e1.y * g[0].y);
#endif
}

// The number of the edge between two corners: 01, 02, 03, 12, 13, 23 or 01, 02, 12.
__device__ constexpr u32 edge(u32 a, u32 b) {
    return a < b ? a * (2 * CORNERS - a - 1) / 2 + b - a - 1 : edge(b, a);
}

__device__ inline double scaled(double sigma, double scale) {
    return scale * sigma;
}

__device__ inline Symmetric scaled(const Symmetric& t, double scale) {
    return Symmetric{scale * t.xx, scale * t.yy, scale * t.zz, scale * t.yz, scale * t.xz, scale * t.xy};
}

// Stiffness between corners, by edges.
__device__ inline void stiffness_of_edges(
    double (&k)[EDGES], const Vector (&g)[DIMENSION], const SigmaMean& sigma, double scale) {
    const SigmaMean t = scaled(sigma, scale);
    Vector first = {0.0, 0.0, 0.0};
#pragma unroll
    for (u32 a = 0; a < DIMENSION; ++a) first = first - g[a];
#pragma unroll
    for (u32 b = 1; b < CORNERS; ++b) {
        const Vector h = t * g[b - 1];
        k[edge(0, b)] = dot(first, h);
#pragma unroll
        for (u32 a = 1; a < b; ++a) k[edge(a, b)] = dot(g[a - 1], h);
    }
}

// Constrained unknowns: a bit mask, the count before each word, and the values.
struct Given {
    const u64* mask;
    const u32* rank;
    const double* values;
};

__device__ inline bool is_given(const Given& given, u32 dof) {
    return given.mask[dof / 64] >> (dof % 64) & 1;
}

__device__ inline double given_value(const Given& given, u32 dof) {
    const u64 before = given.mask[dof / 64] & ((1ull << (dof % 64)) - 1);
    return given.values[given.rank[dof / 64] + __popc((u32)before) + __popc((u32)(before >> 32))];
}
