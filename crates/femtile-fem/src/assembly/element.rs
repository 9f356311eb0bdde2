//! Element matrices of linear simplices, a chunk of cells at a time.

use pulp::Simd;

use crate::forms::{CHUNK, ChunkCoefficients};

/// One number per cell of a chunk.
pub(super) type Lanes = [f64; CHUNK];

/// Corner coordinates of a chunk of cells: `[3 · corner + axis][cell]`.
pub(super) struct Corners(pub [Lanes; 12]);

/// Element matrices and loads of a chunk of cells.
pub(super) struct Elements {
    /// Entries 01, 02, 03, 12, 13, 23 of tetrahedra; 01, 02, 12 of triangles.
    pub off_diagonal: [Lanes; 6],
    /// Diagonal entries.
    pub diagonal: [Lanes; 4],
    /// Loads.
    pub load: [Lanes; 4],
    /// Measures of the cells; not positive or not finite if a cell is degenerate.
    pub measure: Lanes,
}

impl Elements {
    /// Returns zeros.
    pub fn new() -> Box<Self> {
        let zero = [0.0; CHUNK];
        Box::new(Self { off_diagonal: [zero; 6], diagonal: [zero; 4], load: [zero; 4], measure: zero })
    }
}

/// Computes the element matrices of the first `n` cells of a chunk; `n` is rounded up to whole SIMD vectors.
///
/// With area vectors $g_a$ as in [`femtile_element::Affine`] and $J$ the determinant,
///
/// $$ K_{ab} = \frac{g_a \cdot \bar\sigma g_b}{d!\,|J|} + |T|\,\overline{\lambda\varphi_a\varphi_b} \quad (a \ne b), \qquad
///    K_{aa} = -\sum_{b \ne a} \frac{g_a \cdot \bar\sigma g_b}{d!\,|J|} + |T|\,\overline{\lambda\varphi_a^2}, $$
///
/// so that the rows of the stiffness part sum to zero.
#[inline(always)]
pub(super) fn element_matrices<S: Simd, const N: usize>(
    simd: S,
    out: &mut Elements,
    corners: &Corners,
    coefficients: &ChunkCoefficients,
    n: usize,
) {
    let n_vectors = n.div_ceil(S::F64_LANES);
    for v in 0..n_vectors {
        if N == 4 {
            tetrahedra(simd, out, corners, coefficients, v);
        } else {
            triangles(simd, out, corners, coefficients, v);
        }
    }
}

#[inline(always)]
fn load<S: Simd>(lanes: &Lanes, v: usize) -> S::f64s {
    S::as_simd_f64s(lanes).0[v]
}

#[inline(always)]
fn store<S: Simd>(lanes: &mut Lanes, v: usize, value: S::f64s) {
    S::as_mut_simd_f64s(lanes).0[v] = value;
}

/// Returns $c + a b$, the product rounded before the addition, so that matrices have the same bits on every SIMD path.
#[inline(always)]
fn plus_product<S: Simd>(s: S, c: S::f64s, a: S::f64s, b: S::f64s) -> S::f64s {
    s.add_f64s(c, s.mul_f64s(a, b))
}

#[inline(always)]
fn dot<S: Simd>(s: S, a: [S::f64s; 3], b: [S::f64s; 3]) -> S::f64s {
    plus_product(s, plus_product(s, s.mul_f64s(a[0], b[0]), a[1], b[1]), a[2], b[2])
}

#[inline(always)]
fn cross<S: Simd>(s: S, a: [S::f64s; 3], b: [S::f64s; 3]) -> [S::f64s; 3] {
    let minor = |i: usize, j: usize| s.sub_f64s(s.mul_f64s(a[i], b[j]), s.mul_f64s(a[j], b[i]));
    [minor(1, 2), minor(2, 0), minor(0, 1)]
}

/// Returns σ g for the mean tensors of a chunk.
#[inline(always)]
fn times_sigma<S: Simd>(s: S, c: &ChunkCoefficients, g: [S::f64s; 3], v: usize) -> [S::f64s; 3] {
    let t = |entry: usize| load::<S>(&c.sigma[entry], v);
    [dot(s, [t(0), t(5), t(4)], g), dot(s, [t(5), t(1), t(3)], g), dot(s, [t(4), t(3), t(2)], g)]
}

#[inline(always)]
fn tetrahedra<S: Simd>(s: S, out: &mut Elements, corners: &Corners, c: &ChunkCoefficients, v: usize) {
    let p = |corner: usize, axis: usize| load::<S>(&corners.0[3 * corner + axis], v);
    let origin = [p(0, 0), p(0, 1), p(0, 2)];
    let edge = |corner: usize| {
        [
            s.sub_f64s(p(corner, 0), origin[0]),
            s.sub_f64s(p(corner, 1), origin[1]),
            s.sub_f64s(p(corner, 2), origin[2]),
        ]
    };
    let (e1, e2, e3) = (edge(1), edge(2), edge(3));
    let (g1, g2, g3) = (cross(s, e2, e3), cross(s, e3, e1), cross(s, e1, e2));
    let opposite = |i: usize| s.neg_f64s(s.add_f64s(s.add_f64s(g1[i], g2[i]), g3[i]));
    let g0 = [opposite(0), opposite(1), opposite(2)];
    let six_volumes = s.abs_f64s(dot(s, e1, g1));
    let measure = s.mul_f64s(six_volumes, s.splat_f64s(1.0 / 6.0));
    let scale = s.div_f64s(s.splat_f64s(1.0 / 6.0), six_volumes);

    let (h1, h2, h3) = if c.sigma_is_scalar {
        let sigma = s.mul_f64s(scale, load::<S>(&c.sigma[0], v));
        let times =
            |g: [S::f64s; 3]| [s.mul_f64s(sigma, g[0]), s.mul_f64s(sigma, g[1]), s.mul_f64s(sigma, g[2])];
        (times(g1), times(g2), times(g3))
    } else {
        let times = |g: [S::f64s; 3]| {
            let h = times_sigma(s, c, g, v);
            [s.mul_f64s(scale, h[0]), s.mul_f64s(scale, h[1]), s.mul_f64s(scale, h[2])]
        };
        (times(g1), times(g2), times(g3))
    };
    let k01 = dot(s, g0, h1);
    let k02 = dot(s, g0, h2);
    let k03 = dot(s, g0, h3);
    let k12 = dot(s, g1, h2);
    let k13 = dot(s, g1, h3);
    let k23 = dot(s, g2, h3);
    let minus_sum = |a, b, c| s.neg_f64s(s.add_f64s(s.add_f64s(a, b), c));
    let diagonal = [
        minus_sum(k01, k02, k03),
        minus_sum(k01, k12, k13),
        minus_sum(k02, k12, k23),
        minus_sum(k03, k13, k23),
    ];
    finish::<S, 4, 6>(s, out, c, v, measure, diagonal, [k01, k02, k03, k12, k13, k23]);
}

#[inline(always)]
fn triangles<S: Simd>(s: S, out: &mut Elements, corners: &Corners, c: &ChunkCoefficients, v: usize) {
    let p = |corner: usize, axis: usize| load::<S>(&corners.0[3 * corner + axis], v);
    let edge = |corner: usize, axis: usize| s.sub_f64s(p(corner, axis), p(0, axis));
    let zero = s.splat_f64s(0.0);
    let g1 = [edge(2, 1), s.neg_f64s(edge(2, 0)), zero];
    let g2 = [s.neg_f64s(edge(1, 1)), edge(1, 0), zero];
    let g0 = [s.neg_f64s(s.add_f64s(g1[0], g2[0])), s.neg_f64s(s.add_f64s(g1[1], g2[1])), zero];
    let two_areas = s.abs_f64s(dot(s, [edge(1, 0), edge(1, 1), zero], g1));
    let half = s.splat_f64s(0.5);
    let (measure, scale) = (s.mul_f64s(two_areas, half), s.div_f64s(half, two_areas));

    let times = |g: [S::f64s; 3]| {
        let h = if c.sigma_is_scalar {
            let sigma = load::<S>(&c.sigma[0], v);
            [s.mul_f64s(sigma, g[0]), s.mul_f64s(sigma, g[1]), zero]
        } else {
            times_sigma(s, c, g, v)
        };
        [s.mul_f64s(scale, h[0]), s.mul_f64s(scale, h[1]), zero]
    };
    let (h1, h2) = (times(g1), times(g2));
    let (k01, k02, k12) = (dot(s, g0, h1), dot(s, g0, h2), dot(s, g1, h2));
    let minus_sum = |a, b| s.neg_f64s(s.add_f64s(a, b));
    let diagonal = [minus_sum(k01, k02), minus_sum(k01, k12), minus_sum(k02, k12)];
    finish::<S, 3, 3>(s, out, c, v, measure, diagonal, [k01, k02, k12]);
}

/// Adds the mass term, computes the load, and stores.
#[inline(always)]
fn finish<S: Simd, const N: usize, const P: usize>(
    s: S,
    out: &mut Elements,
    c: &ChunkCoefficients,
    v: usize,
    measure: S::f64s,
    diagonal: [S::f64s; N],
    off_diagonal: [S::f64s; P],
) {
    store::<S>(&mut out.measure, v, measure);
    for a in 0..N {
        let mass = load::<S>(&c.mass[a], v);
        store::<S>(&mut out.diagonal[a], v, plus_product(s, diagonal[a], measure, mass));
        store::<S>(&mut out.load[a], v, s.mul_f64s(measure, load::<S>(&c.load[a], v)));
    }
    for i in 0..P {
        let mass = load::<S>(&c.mass[4 + i], v);
        store::<S>(&mut out.off_diagonal[i], v, plus_product(s, off_diagonal[i], measure, mass));
    }
}
