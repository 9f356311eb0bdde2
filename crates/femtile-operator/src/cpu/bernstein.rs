//! Products of cell matrices of simplices whose tangent is constant in each cell, by the Bernstein basis.
//!
//! With multi-indices $\alpha$ of barycentric coordinates and coefficients $b_\alpha$ of a polynomial of degree p, the derivative along
//! axis a of the reference cell has degree p − 1 and the coefficients $p\,(b_{\gamma+e_a} - b_{\gamma+e_0})$: differences, no table.
//! By Vandermonde's identity the mass matrix of degree m is a sum over all lower degrees,
//!
//! $$ \int B_\alpha B_\beta = |\det J| \frac{(m!)^2}{(2m + d)!} \sum_{|\gamma| \le m} \binom{\alpha}{\gamma} \binom{\beta}{\gamma}, $$
//!
//! and the sums over $\binom{\alpha}{\gamma}$ for one $|\gamma|$ follow from those for $|\gamma| + 1$ by $d + 1$ additions each. Values at
//! nodes become coefficients entity by entity: coefficients of an edge need the nodes of that edge only.
//!
//! Additions or multiply-adds per cell for scalar diffusion, beside tables of gradients at the points of a rule of degree 2(p − 1):
//!
//! | tetrahedra, p | 1 | 2 | 3 | 4 | 5 | 6 |
//! |---|---|---|---|---|---|---|
//! | Bernstein | 18 | 135 | 488 | 1,360 | 3,270 | 7,130 |
//! | tables | 33 | 276 | 1,420 | 5,260 | 15,500 | 38,000 |

use femtile_device::Cpu;
use femtile_device::cpu::{SimdLevel, Wide};
use femtile_space::Element;
use pulp::{Simd, WithSimd};

use super::basis::{LANES, Lanes};

type V<S> = <f64 as Wide>::Vector<S>;

/// Most degree, and most multi-indices of it and of the degree below.
const MAX_DEGREE: usize = 6;
const MAX: usize = 84;
const MAX_BELOW: usize = 56;

/// Most coefficients inside an entity.
const MAX_INNER: usize = 10;

/// Most coefficients of a face.
const MAX_FACE: usize = 28;

/// Multi-indices of one degree.
#[derive(Clone, Copy)]
struct Lattice {
    indices: [[usize; 4]; MAX],
    /// The number of each by which they are sorted.
    keys: [usize; MAX],
    n: usize,
}

impl Lattice {
    /// Lists the multi-indices of d + 1 barycentric coordinates in the order of the nodes of elements: by the number of their
    /// corners, then by these, then by the indices.
    const fn new(d: usize, degree: usize) -> Self {
        let mut all = Self { indices: [[0; 4]; MAX], keys: [0; MAX], n: 0 };
        let mut code = 0;
        while code < (degree + 1).pow(d as u32) {
            let (mut rest, mut sum, mut at) = (code, 0, [0; 4]);
            let mut axis = 1;
            while axis <= d {
                at[axis] = rest % (degree + 1);
                sum += at[axis];
                rest /= degree + 1;
                axis += 1;
            }
            if sum <= degree {
                at[0] = degree - sum;
                let key = Self::key(at);
                // Insertion into the sorted list.
                let mut place = all.n;
                while place > 0 && all.keys[place - 1] > key {
                    all.keys[place] = all.keys[place - 1];
                    all.indices[place] = all.indices[place - 1];
                    place -= 1;
                }
                all.keys[place] = key;
                all.indices[place] = at;
                all.n += 1;
            }
            code += 1;
        }
        all
    }

    /// Returns a number by which multi-indices are sorted.
    const fn key(at: [usize; 4]) -> usize {
        let (mut n_corners, mut corners, mut indices) = (0, 0, 0);
        let mut i = 0;
        while i < 4 {
            if at[i] > 0 {
                n_corners += 1;
                corners = 4 * corners + i;
            }
            indices = 8 * indices + at[i];
            i += 1;
        }
        (n_corners << 8 | corners) << 12 | indices
    }

    const fn position(&self, at: [usize; 4]) -> usize {
        let (key, mut i) = (Self::key(at), 0);
        while self.keys[i] != key {
            i += 1;
        }
        i
    }
}

/// Places of coefficients on simplices of dimension D.
struct Places<const D: usize>;

/// Places on simplices of one dimension.
struct Tables {
    /// Of each degree below the highest, for each multi-index γ the places of γ + e_i.
    up: [[[u8; 4]; MAX_BELOW]; MAX_DEGREE],
    /// Of each degree, α! for each multi-index, and $(\alpha!)^{-2}$.
    factorials: [[f64; MAX]; MAX_DEGREE + 1],
    weights: [[f64; MAX]; MAX_DEGREE + 1],
    /// Of each degree, the coefficients of each edge.
    edges: [[[u8; MAX_DEGREE + 1]; 6]; MAX_DEGREE + 1],
    /// Of each degree, the coefficients of each face.
    faces: [[[u8; MAX_FACE]; 4]; MAX_DEGREE + 1],
    /// Of each degree, the places among those of a face that lie in its interior.
    inner: [[u8; MAX_INNER]; MAX_DEGREE + 1],
}

impl<const D: usize> Places<D> {
    const TABLES: Tables = Tables::new(D);
}

impl Tables {
    const fn new(d: usize) -> Self {
        let mut all = Self {
            up: [[[0; 4]; MAX_BELOW]; MAX_DEGREE],
            factorials: [[1.0; MAX]; MAX_DEGREE + 1],
            weights: [[1.0; MAX]; MAX_DEGREE + 1],
            edges: [[[0; MAX_DEGREE + 1]; 6]; MAX_DEGREE + 1],
            faces: [[[0; MAX_FACE]; 4]; MAX_DEGREE + 1],
            inner: [[0; MAX_INNER]; MAX_DEGREE + 1],
        };
        let mut degree = 0;
        let mut below = Lattice::new(d, 0);
        while degree <= MAX_DEGREE {
            let own = Lattice::new(d, degree);
            let mut place = 0;
            while place < own.n {
                let mut i = 0;
                while i <= d {
                    all.factorials[degree][place] *= factorial(own.indices[place][i]);
                    i += 1;
                }
                let found = all.factorials[degree][place];
                all.weights[degree][place] = 1.0 / (found * found);
                place += 1;
            }
            place = 0;
            while degree > 0 && place < below.n {
                let mut i = 0;
                while i <= d {
                    let mut at = below.indices[place];
                    at[i] += 1;
                    all.up[degree - 1][place][i] = own.position(at) as u8;
                    i += 1;
                }
                place += 1;
            }
            all.fill_entities(d, degree, &own);
            below = own;
            degree += 1;
        }
        all
    }

    const fn fill_entities(&mut self, d: usize, degree: usize, own: &Lattice) {
        let (mut edge, mut face, mut i) = (0, 0, 0);
        while i <= d {
            let mut j = i + 1;
            while j <= d {
                let mut q = 0;
                while q <= degree {
                    let mut at = [0; 4];
                    at[i] = degree - q;
                    at[j] = q;
                    self.edges[degree][edge][q] = own.position(at) as u8;
                    q += 1;
                }
                edge += 1;
                let mut k = j + 1;
                while k <= d {
                    let on_face = Lattice::new(2, degree);
                    let (mut q, mut n_inner) = (0, 0);
                    while q < on_face.n {
                        let [a, b, c, _] = on_face.indices[q];
                        let mut at = [0; 4];
                        at[i] = a;
                        at[j] = b;
                        at[k] = c;
                        self.faces[degree][face][q] = own.position(at) as u8;
                        if a > 0 && b > 0 && c > 0 {
                            self.inner[degree][n_inner] = q as u8;
                            n_inner += 1;
                        }
                        q += 1;
                    }
                    face += 1;
                    k += 1;
                }
                j += 1;
            }
            i += 1;
        }
    }
}

const fn factorial(n: usize) -> f64 {
    if n < 2 { 1.0 } else { n as f64 * factorial(n - 1) }
}

/// Returns the number of multi-indices of a degree.
const fn count(d: usize, degree: usize) -> usize {
    let (mut product, mut i) = (1, 0);
    while i < d {
        product = product * (degree + 1 + i) / (i + 1);
        i += 1;
    }
    product
}

/// Returns the number of coefficients in the interior of an entity of a dimension.
const fn n_inner(d: usize, degree: usize) -> usize {
    if degree > d { count(d, degree - d - 1) } else { 0 }
}

/// The Bernstein basis of a Lagrange element on triangles or tetrahedra.
#[derive(Debug)]
pub(crate) struct Bernstein {
    dimension: usize,
    degree: usize,
    /// Coefficients inside an edge, a face and the cell by values at its nodes.
    inside: Box<Inside>,
    /// Factors of the integrals of $\nabla u^\mathsf{T} G \nabla v$ and of uv over the reference cell.
    diffusion_factor: f64,
    reaction_factor: f64,
}

/// Coefficients inside an edge, a face and the cell by values at its nodes: `[n_nodes][n_inner]`, filled up with zeros. Sizes are those
/// of the highest degree, so that loops over those of a degree are unrolled.
#[derive(Debug)]
struct Inside {
    edge: [Column; MAX_DEGREE + 1],
    face: [Column; MAX_FACE],
    cell: [Column; MAX],
}

/// Factors of the value at a node.
type Column = [f64; MAX_INNER];

/// Entries of a tangent that is constant in each cell of a batch, for the kernels below.
#[derive(Clone, Copy)]
pub(crate) struct CellEntries<'a> {
    /// Of each row, the columns and the places of their values; rows and columns are derivatives $[c][d]$ of the components.
    pub diffusion: &'a SparseRows,
    /// The same for values of the components.
    pub reaction: &'a SparseRows,
    /// `[LANES / lanes][n_entries][lanes]`
    pub values: &'a [f64],
    /// Inverse Jacobians: `[d][d]`
    pub inverses: &'a [Lanes],
    /// $|\det J|$
    pub determinant: &'a Lanes,
}

/// The places of entries of a small matrix.
#[derive(Debug, Default)]
pub(crate) struct SparseRows {
    /// First entry of each row, and the number of all.
    pub offsets: Vec<u32>,
    /// Column and place of the value of each entry.
    pub entries: Vec<[u32; 2]>,
}

impl SparseRows {
    #[inline(always)]
    pub fn row(&self, row: usize) -> &[[u32; 2]] {
        &self.entries[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

/// Calls a macro with the sizes of the kernels for a dimension and degree.
macro_rules! for_sizes {
    ($run:ident, $of:expr) => {
        match $of {
            (2, 1) => $run!(2, 1, 3, 1, 0, 1),
            (2, 2) => $run!(2, 2, 6, 3, 1, 4),
            (2, 3) => $run!(2, 3, 10, 6, 4, 10),
            (2, 4) => $run!(2, 4, 15, 10, 10, 20),
            (2, 5) => $run!(2, 5, 21, 15, 20, 35),
            (2, _) => $run!(2, 6, 28, 21, 35, 56),
            (_, 1) => $run!(3, 1, 4, 1, 0, 1),
            (_, 2) => $run!(3, 2, 10, 4, 1, 5),
            (_, 3) => $run!(3, 3, 20, 10, 5, 15),
            (_, 4) => $run!(3, 4, 35, 20, 15, 35),
            (_, 5) => $run!(3, 5, 56, 35, 35, 70),
            (_, _) => $run!(3, 6, 84, 56, 70, 126),
        }
    };
}

impl Bernstein {
    /// Prepares the basis of an element on simplices, else returns none.
    pub fn new(element: &Element) -> Option<Self> {
        let (d, degree) = (element.dimension(), element.degree());
        if !element.kind().is_simplex() || degree > MAX_DEGREE || !(2..=3).contains(&d) {
            return None;
        }
        let own = Lattice::new(d, degree);
        let tables = if d == 2 { &Places::<2>::TABLES } else { &Places::<3>::TABLES };
        let zeros = [0.0; MAX_INNER];
        let mut inside =
            Inside { edge: [zeros; MAX_DEGREE + 1], face: [zeros; MAX_FACE], cell: [zeros; MAX] };
        let edge = &tables.edges[degree][0][..=degree];
        let face = &tables.faces[degree][0][..count(2, degree)];
        let cell: Vec<u8> = (0..own.n as u8).collect();
        coefficients(element, &own, 1, edge, &mut inside.edge);
        coefficients(element, &own, 2, face, &mut inside.face);
        if d == 3 {
            coefficients(element, &own, 3, &cell, &mut inside.cell);
        }
        let p = degree as f64;
        Some(Self {
            dimension: d,
            degree,
            inside: Box::new(inside),
            diffusion_factor: p * p * mass_factor(d, degree - 1),
            reaction_factor: mass_factor(d, degree),
        })
    }

    /// Returns the factor of $\nabla u^\mathsf{T} G \nabla v$ integrated over the reference cell, for G times $|\det J|$.
    pub fn diffusion_factor(&self) -> f64 {
        self.diffusion_factor
    }

    /// Returns the factor of the mass matrix.
    pub fn reaction_factor(&self) -> f64 {
        self.reaction_factor
    }

    /// Computes $u \leftarrow K u$ of scalar diffusion and reaction in place.
    ///
    /// # Shapes
    /// `metric: [LANES / lanes][n][lanes]` with 3 numbers xx, yy, xy on triangles, 6 numbers xx, yy, zz, yz, xz, xy on tetrahedra, and
    /// one more with a reaction, times [`Self::diffusion_factor`] and [`Self::reaction_factor`]; `u: [n]`
    pub fn multiply_metric(&self, cpu: &Cpu, metric: &[f64], has_reaction: bool, u: &mut [Lanes]) {
        let inside = &*self.inside;
        macro_rules! run {
            ($d:literal, $p:literal, $n:literal, $m:literal, $below:literal, $lower:literal) => {
                match has_reaction {
                    true => run(cpu, ByMetric::<$d, $p, $n, $m, $below, $lower, true> { inside, metric, u }),
                    false => {
                        run(cpu, ByMetric::<$d, $p, $n, $m, $below, $lower, false> { inside, metric, u })
                    }
                }
            };
        }
        for_sizes!(run, (self.dimension, self.degree))
    }

    /// Computes $u \leftarrow K u$ of several components in place.
    ///
    /// # Shapes
    /// `u: [n_components][n]`, `scratch`: as [`Self::scratch_len`]
    pub fn multiply_entries(
        &self,
        cpu: &Cpu,
        entries: CellEntries<'_>,
        u: &mut [Lanes],
        scratch: &mut [f64],
    ) {
        macro_rules! run {
            ($d:literal, $p:literal, $n:literal, $m:literal, $below:literal, $lower:literal) => {
                run(cpu, ByEntries::<$d, $p, $n, $m, $below, $lower> { basis: self, entries, u, scratch })
            };
        }
        for_sizes!(run, (self.dimension, self.degree))
    }

    /// Returns the length of the workspace of [`Self::multiply_entries`].
    pub fn scratch_len(&self, n_components: usize) -> usize {
        let per_component =
            self.dimension * count(self.dimension, self.degree - 1) + count(self.dimension, self.degree);
        n_components * (per_component + 2 * CHUNK * self.dimension) * LANES
    }
}

fn mass_factor(d: usize, degree: usize) -> f64 {
    factorial(degree) * factorial(degree) / factorial(2 * degree + d)
}

/// Computes the coefficients inside an entity, given by its dimension and nodes, by values at these.
fn coefficients(element: &Element, lattice: &Lattice, extent: usize, nodes: &[u8], found: &mut [Column]) {
    if n_inner(extent, element.degree()) == 0 {
        return;
    }
    let (n, degree, d) = (nodes.len(), element.degree(), element.dimension());
    // Rows of values of the polynomials at the nodes, beside the identity.
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (row, &node) in nodes.iter().enumerate() {
        let at = element.nodes()[node as usize];
        let first = 1.0 - at[..d].iter().sum::<f64>();
        let power = |index: [usize; 4]| {
            let mut value = factorial(degree);
            for corner in 0..=d {
                let x = if corner == 0 { first } else { at[corner - 1] };
                value *= x.powi(index[corner] as i32) / factorial(index[corner]);
            }
            value
        };
        let mut values: Vec<f64> = nodes.iter().map(|&of| power(lattice.indices[of as usize])).collect();
        values.extend((0..n).map(|column| if column == row { 1.0 } else { 0.0 }));
        rows.push(values);
    }
    for pivot in 0..n {
        let best = (pivot..n).max_by(|&a, &b| rows[a][pivot].abs().total_cmp(&rows[b][pivot].abs()));
        rows.swap(pivot, best.unwrap_or(pivot));
        let scale = 1.0 / rows[pivot][pivot];
        rows[pivot].iter_mut().for_each(|value| *value *= scale);
        let of_pivot = rows[pivot].clone();
        for (row, values) in rows.iter_mut().enumerate() {
            if row == pivot {
                continue;
            }
            let factor = values[pivot];
            values.iter_mut().zip(&of_pivot).for_each(|(value, of_pivot)| *value -= factor * of_pivot);
        }
    }
    let is_inner = |&at: &usize| {
        let index = lattice.indices[nodes[at] as usize];
        index.iter().filter(|&&index| index > 0).count() == extent + 1
    };
    let inner: Vec<usize> = (0..n).filter(is_inner).collect();
    for (node, column) in found[..n].iter_mut().enumerate() {
        inner.iter().zip(column).for_each(|(&row, entry)| *entry = rows[row][n + node]);
    }
}

/// Runs a kernel on the SIMD level of a processor.
fn run(cpu: &Cpu, work: impl WithSimd<Output = ()>) {
    match cpu.simd() {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 if let Some(simd) = pulp::x86::V3::try_new() => Simd::vectorize(simd, work),
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 if let Some(simd) = pulp::x86::V4::try_new() => Simd::vectorize(simd, work),
        _ => Simd::vectorize(pulp::Scalar::new(), work),
    }
}

/// Scalar diffusion and reaction in dimension D and degree P: N coefficients, M of degree P − 1, BELOW of all lower degrees, and LOWER
/// = M + BELOW.
struct ByMetric<
    'a,
    const D: usize,
    const P: usize,
    const N: usize,
    const M: usize,
    const BELOW: usize,
    const LOWER: usize,
    const HAS_REACTION: bool,
> {
    inside: &'a Inside,
    metric: &'a [f64],
    u: &'a mut [Lanes],
}

impl<
    const D: usize,
    const P: usize,
    const N: usize,
    const M: usize,
    const BELOW: usize,
    const LOWER: usize,
    const HAS_REACTION: bool,
> WithSimd for ByMetric<'_, D, P, N, M, BELOW, LOWER, HAS_REACTION>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        const { assert!(N == count(D, P) && M == count(D, P - 1) && LOWER == M + BELOW) };
        let x: &mut [V<S>] = bytemuck::cast_slice_mut(self.u.as_flattened_mut());
        let metric: &[V<S>] = bytemuck::cast_slice(self.metric);
        let n_parts = LANES / f64::lanes::<S>();
        let width = D * (D + 1) / 2 + usize::from(HAS_REACTION);
        assert!(metric.len() == width * n_parts);
        for part in 0..n_parts {
            let metric = &metric[part * width..(part + 1) * width];
            let mut u: [V<S>; N] = load(simd, x, part);
            convert::<S, D, P, N>(simd, self.inside, &mut u);
            let mut g = [[zero(simd); D]; M];
            let up = &Places::<D>::TABLES.up[P - 1];
            for (up, g) in up.iter().zip(&mut g) {
                let slopes = differences::<S, D, N>(simd, &u, up);
                for a in 0..D {
                    g[a] = simd.mul_f64s(metric[place_in_metric::<D>(a, 0)], slopes[0]);
                    for b in 1..D {
                        g[a] = f64::plus_product(simd, g[a], metric[place_in_metric::<D>(a, b)], slopes[b]);
                    }
                }
            }
            let mut t = [[zero(simd); D]; BELOW];
            multiply_mass::<S, D, D>(simd, P - 1, &mut g, &mut t);
            if HAS_REACTION {
                let mut t = [[zero(simd); 1]; LOWER];
                let mut values = u.map(|value| [value]);
                multiply_mass::<S, D, 1>(simd, P, &mut values, &mut t);
                for k in 0..N {
                    u[k] = simd.mul_f64s(metric[width - 1], values[k][0]);
                }
            } else {
                u = [zero(simd); N];
            }
            for (up, g) in up.iter().zip(&g) {
                add_differences::<S, D, N>(simd, &mut u, up, g);
            }
            convert_transposed::<S, D, P, N>(simd, self.inside, &mut u);
            store::<S, N>(x, part, &u);
        }
    }
}

/// Returns the place of an entry of the metric.
const fn place_in_metric<const D: usize>(a: usize, b: usize) -> usize {
    if a == b { a } else { D * (D + 1) / 2 - a - b }
}

/// Returns zero, for sums: −0 is the neutral element of additions, which the compiler then leaves out.
#[inline(always)]
fn zero<S: Simd>(simd: S) -> V<S> {
    simd.splat_f64s(-0.0)
}

/// Returns the value at a place of [`Tables`].
#[inline(always)]
fn at<T: Copy>(values: &[T], place: u8) -> T {
    debug_assert!((place as usize) < values.len());
    // SAFETY: the places of a degree are below the number of its multi-indices, which is the length of its coefficients.
    unsafe { *values.get_unchecked(place as usize) }
}

/// Returns the entry at a place of [`Tables`].
#[inline(always)]
fn at_mut<T>(values: &mut [T], place: u8) -> &mut T {
    debug_assert!((place as usize) < values.len());
    // SAFETY: as in `at`.
    unsafe { values.get_unchecked_mut(place as usize) }
}

#[inline(always)]
fn set<T>(values: &mut [T], place: u8, value: T) {
    *at_mut(values, place) = value;
}

/// Returns the coefficients of a component of one part of a batch.
#[inline(always)]
fn load<S: Simd, const N: usize>(simd: S, x: &[V<S>], part: usize) -> [V<S>; N] {
    let n_parts = LANES / f64::lanes::<S>();
    assert!(x.len() >= N * n_parts && part < n_parts);
    let mut u = [zero(simd); N];
    for k in 0..N {
        // SAFETY: k n_parts + part is less than N n_parts.
        u[k] = unsafe { *x.get_unchecked(k * n_parts + part) };
    }
    u
}

/// Stores the coefficients of a component of one part of a batch.
#[inline(always)]
fn store<S: Simd, const N: usize>(x: &mut [V<S>], part: usize, u: &[V<S>; N]) {
    let n_parts = LANES / f64::lanes::<S>();
    assert!(x.len() >= N * n_parts && part < n_parts);
    for k in 0..N {
        // SAFETY: k n_parts + part is less than N n_parts.
        unsafe { *x.get_unchecked_mut(k * n_parts + part) = u[k] };
    }
}

/// Returns the coefficients of the derivatives that belong to γ, for degree one: without the factor p.
#[inline(always)]
fn differences<S: Simd, const D: usize, const N: usize>(simd: S, u: &[V<S>; N], up: &[u8; 4]) -> [V<S>; D] {
    let first = at(u, up[0]);
    std::array::from_fn(
        #[inline(always)]
        |a| simd.sub_f64s(at(u, up[1 + a]), first),
    )
}

/// Adds the transpose of [`differences`].
#[inline(always)]
fn add_differences<S: Simd, const D: usize, const N: usize>(
    simd: S,
    u: &mut [V<S>; N],
    up: &[u8; 4],
    g: &[V<S>; D],
) {
    let mut sum = g[0];
    for a in 1..D {
        sum = simd.add_f64s(sum, g[a]);
    }
    let first = at_mut(u, up[0]);
    *first = simd.sub_f64s(*first, sum);
    for a in 0..D {
        let to = at_mut(u, up[1 + a]);
        *to = simd.add_f64s(*to, g[a]);
    }
}

/// Turns values at nodes into coefficients, in place.
#[inline(always)]
fn convert<S: Simd, const D: usize, const P: usize, const N: usize>(
    simd: S,
    inside: &Inside,
    u: &mut [V<S>; N],
) {
    let tables = &Places::<D>::TABLES;
    let (on_edge, on_face, in_cell) = const { (n_inner(1, P), n_inner(2, P), n_inner(3, P)) };
    if D == 3 && P > 3 {
        let mut sums = [zero(simd); MAX_INNER];
        for node in 0..N {
            add_column(simd, &mut sums, &inside.cell[node], u[node], in_cell);
        }
        u[N - in_cell..].copy_from_slice(&sums[..in_cell]);
    }
    if P > 2 {
        for face in &tables.faces[P][..n_faces(D)] {
            let mut sums = [zero(simd); MAX_INNER];
            for q in 0..const { count(2, P) } {
                add_column(simd, &mut sums, &inside.face[q], at(u, face[q]), on_face);
            }
            for row in 0..on_face {
                set(u, face[tables.inner[P][row] as usize], sums[row]);
            }
        }
    }
    if P > 1 {
        for edge in &tables.edges[P][..D * (D + 1) / 2] {
            let mut sums = [zero(simd); MAX_INNER];
            for q in 0..=P {
                add_column(simd, &mut sums, &inside.edge[q], at(u, edge[q]), on_edge);
            }
            for row in 0..on_edge {
                set(u, edge[1 + row], sums[row]);
            }
        }
    }
}

/// Computes the transpose of [`convert`], in place.
#[inline(always)]
fn convert_transposed<S: Simd, const D: usize, const P: usize, const N: usize>(
    simd: S,
    inside: &Inside,
    u: &mut [V<S>; N],
) {
    let tables = &Places::<D>::TABLES;
    let (on_edge, on_face, in_cell) = const { (n_inner(1, P), n_inner(2, P), n_inner(3, P)) };
    let mut values = [zero(simd); MAX_INNER];
    // Coefficients of larger entities are read after those of smaller ones, which do not change them.
    if P > 1 {
        for edge in &tables.edges[P][..D * (D + 1) / 2] {
            for row in 0..on_edge {
                values[row] = at(u, edge[1 + row]);
                set(u, edge[1 + row], zero(simd));
            }
            for q in 0..=P {
                let sum = along_column(simd, at(u, edge[q]), &inside.edge[q], &values, on_edge);
                set(u, edge[q], sum);
            }
        }
    }
    if P > 2 {
        for face in &tables.faces[P][..n_faces(D)] {
            for row in 0..on_face {
                let place = face[tables.inner[P][row] as usize];
                values[row] = at(u, place);
                set(u, place, zero(simd));
            }
            for q in 0..const { count(2, P) } {
                let sum = along_column(simd, at(u, face[q]), &inside.face[q], &values, on_face);
                set(u, face[q], sum);
            }
        }
    }
    if D == 3 && P > 3 {
        values[..in_cell].copy_from_slice(&u[N - in_cell..]);
        u[N - in_cell..].fill(zero(simd));
        for node in 0..N {
            u[node] = along_column(simd, u[node], &inside.cell[node], &values, in_cell);
        }
    }
}

const fn n_faces(d: usize) -> usize {
    if d == 3 { 4 } else { 1 }
}

/// Adds a column of a matrix times a value.
#[inline(always)]
fn add_column<S: Simd>(simd: S, sums: &mut [V<S>; MAX_INNER], column: &Column, value: V<S>, n_rows: usize) {
    for row in 0..n_rows {
        sums[row] = f64::plus_product(simd, sums[row], simd.splat_f64s(column[row]), value);
    }
}

/// Returns the sum of a start and the products of a column with values.
#[inline(always)]
fn along_column<S: Simd>(
    simd: S,
    start: V<S>,
    column: &Column,
    values: &[V<S>; MAX_INNER],
    n_rows: usize,
) -> V<S> {
    let mut sum = start;
    for row in 0..n_rows {
        sum = f64::plus_product(simd, sum, simd.splat_f64s(column[row]), values[row]);
    }
    sum
}

/// $(k!)^{-2}$
const WEIGHTS: [f64; MAX_DEGREE + 1] = {
    let (mut all, mut k) = ([1.0; MAX_DEGREE + 1], 1);
    while k <= MAX_DEGREE {
        all[k] = all[k - 1] / (k * k) as f64;
        k += 1;
    }
    all
};

/// Multiplies W vectors of coefficients of a degree by the sum over γ of the mass matrix, in place; `t` has those of all lower degrees,
/// the highest first.
///
/// With $D_k = \gamma!\,(m - k)! \sum_\alpha \binom{\alpha}{\gamma} c_\alpha$ for $|\gamma| = k$, $D_{k-1}$ at γ is the sum of $D_k$ at all
/// $\gamma + e_i$; the transposed sums go back up.
#[inline(always)]
fn multiply_mass<S: Simd, const D: usize, const W: usize>(
    simd: S,
    degree: usize,
    c: &mut [[V<S>; W]],
    t: &mut [[V<S>; W]],
) {
    let Tables { up, factorials, weights, .. } = &Places::<D>::TABLES;
    // Lower degrees in D variables are as many as one degree in D + 1.
    let n_lower = if degree == 0 { 0 } else { count(D + 1, degree - 1) };
    assert!(c.len() >= count(D, degree) && t.len() >= n_lower, "coefficients");
    if degree == 0 {
        return;
    }
    let n = count(D, degree - 1);
    for (t, up) in t[..n].iter_mut().zip(&up[degree - 1]) {
        *t = [zero(simd); W];
        for i in 0..=D {
            let (from, factor) = (at(c, up[i]), simd.splat_f64s(factorials[degree][up[i] as usize]));
            for w in 0..W {
                t[w] = f64::plus_product(simd, t[w], factor, from[w]);
            }
        }
    }
    let mut first = 0;
    for k in (1..degree).rev() {
        let (from, to) = t[first..].split_at_mut(count(D, k));
        for (to, up) in to.iter_mut().zip(&up[k - 1][..count(D, k - 1)]) {
            *to = at(from, up[0]);
            for i in 1..=D {
                let from = at(from, up[i]);
                for w in 0..W {
                    to[w] = simd.add_f64s(to[w], from[w]);
                }
            }
        }
        first += count(D, k);
    }
    for k in 0..degree {
        let (own, below) = t[first..].split_at_mut(count(D, k));
        let left = simd.splat_f64s(WEIGHTS[degree - k]);
        for (t, weight) in own.iter_mut().zip(&weights[k]) {
            let factor = simd.mul_f64s(left, simd.splat_f64s(*weight));
            for w in 0..W {
                t[w] = simd.mul_f64s(factor, t[w]);
            }
        }
        if k > 0 {
            for (from, up) in below.iter().zip(&up[k - 1][..count(D, k - 1)]) {
                for i in 0..=D {
                    let to = at_mut(own, up[i]);
                    for w in 0..W {
                        to[w] = simd.add_f64s(to[w], from[w]);
                    }
                }
            }
        }
        if k + 1 < degree {
            first -= count(D, k + 1);
        }
    }
    for (t, up) in t[..n].iter().zip(&up[degree - 1]) {
        for i in 0..=D {
            let factor = simd.splat_f64s(factorials[degree][up[i] as usize]);
            let to = at_mut(c, up[i]);
            for w in 0..W {
                to[w] = f64::plus_product(simd, to[w], factor, t[w]);
            }
        }
    }
}

/// Most coefficients that entries of a tangent are multiplied with at a time.
const CHUNK: usize = 5;

/// Returns the number of coefficients to take at a time, a divisor of n.
const fn chunk(n: usize) -> usize {
    match n {
        1 => 1,
        _ if n.is_multiple_of(5) => 5,
        _ if n.is_multiple_of(4) => 4,
        _ => 3,
    }
}

/// The tangent of several components; sizes as those of [`ByMetric`].
struct ByEntries<
    'a,
    const D: usize,
    const P: usize,
    const N: usize,
    const M: usize,
    const BELOW: usize,
    const LOWER: usize,
> {
    basis: &'a Bernstein,
    entries: CellEntries<'a>,
    u: &'a mut [Lanes],
    scratch: &'a mut [f64],
}

impl<const D: usize, const P: usize, const N: usize, const M: usize, const BELOW: usize, const LOWER: usize>
    WithSimd for ByEntries<'_, D, P, N, M, BELOW, LOWER>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        const { assert!(N == count(D, P) && M == count(D, P - 1) && LOWER == M + BELOW) };
        let CellEntries { diffusion, reaction, values, inverses, determinant } = self.entries;
        let n_components = self.u.len() / N;
        let x: &mut [V<S>] = bytemuck::cast_slice_mut(self.u.as_flattened_mut());
        let inverses: &[V<S>] = bytemuck::cast_slice(inverses.as_flattened());
        let determinant: &[V<S>] = bytemuck::cast_slice(determinant);
        let values: &[V<S>] = bytemuck::cast_slice(values);
        let scratch: &mut [V<S>] = bytemuck::cast_slice_mut(self.scratch);
        let (g, rest) = scratch.split_at_mut(n_components * M * D);
        let (products, rest) = rest.split_at_mut(n_components * N);
        let (from, to) = rest.split_at_mut(n_components * D * CHUNK);
        let n_parts = determinant.len();
        let n_values = values.len() / n_parts;
        let up = &Places::<D>::TABLES.up[P - 1];
        let has_reaction = !reaction.entries.is_empty();
        const { assert!(M.is_multiple_of(chunk(M)) && chunk(M) <= CHUNK) };
        let chunk = const { chunk(M) };
        let mut t = [[zero(simd); D]; BELOW];
        for part in 0..n_parts {
            let values = &values[part * n_values..][..n_values];
            for (component, g) in g.chunks_exact_mut(M * D).enumerate() {
                let mut u: [V<S>; N] = load(simd, &x[component * N * n_parts..], part);
                convert::<S, D, P, N>(simd, &self.basis.inside, &mut u);
                for (up, g) in up.iter().zip(g.as_chunks_mut::<D>().0) {
                    *g = differences::<S, D, N>(simd, &u, up);
                }
                if has_reaction {
                    let mut t = [[zero(simd); 1]; LOWER];
                    let mut values = u.map(|value| [value]);
                    multiply_mass::<S, D, 1>(simd, P, &mut values, &mut t);
                    let products = &mut products[component * N..][..N];
                    products.copy_from_slice(values.as_flattened());
                }
            }
            let inverse: [[V<S>; D]; D] =
                std::array::from_fn(|a| std::array::from_fn(|i| inverses[(a * D + i) * n_parts + part]));
            let factor = simd.mul_f64s(simd.splat_f64s(self.basis.diffusion_factor), determinant[part]);
            let weighted = inverse.map(|row| row.map(|entry| simd.mul_f64s(factor, entry)));
            for first in (0..M).step_by(chunk) {
                for component in 0..n_components {
                    for j in 0..chunk {
                        let along = &g[(component * M + first + j) * D..][..D];
                        for i in 0..D {
                            let mut sum = simd.mul_f64s(inverse[0][i], along[0]);
                            for a in 1..D {
                                sum = f64::plus_product(simd, sum, inverse[a][i], along[a]);
                            }
                            from[(component * D + i) * chunk + j] = sum;
                        }
                    }
                }
                for (row, to) in to.chunks_exact_mut(chunk).take(n_components * D).enumerate() {
                    let mut sums = [zero(simd); CHUNK];
                    for &[column, value] in diffusion.row(row) {
                        let (value, from) =
                            (values[value as usize], &from[column as usize * chunk..][..chunk]);
                        for j in 0..chunk {
                            sums[j] = f64::plus_product(simd, sums[j], value, from[j]);
                        }
                    }
                    to.copy_from_slice(&sums[..chunk]);
                }
                for component in 0..n_components {
                    for j in 0..chunk {
                        let to = &to[component * D * chunk..][..D * chunk];
                        let along = &mut g[(component * M + first + j) * D..][..D];
                        for a in 0..D {
                            let mut sum = simd.mul_f64s(weighted[a][0], to[j]);
                            for i in 1..D {
                                sum = f64::plus_product(simd, sum, weighted[a][i], to[i * chunk + j]);
                            }
                            along[a] = sum;
                        }
                    }
                }
            }
            let factor = simd.mul_f64s(simd.splat_f64s(self.basis.reaction_factor), determinant[part]);
            for (component, g) in g.chunks_exact_mut(M * D).enumerate() {
                let g = g.as_chunks_mut::<D>().0;
                multiply_mass::<S, D, D>(simd, P - 1, g, &mut t);
                let mut u = [zero(simd); N];
                if has_reaction {
                    for &[column, value] in reaction.row(component) {
                        let value = simd.mul_f64s(factor, values[value as usize]);
                        for (u, product) in u.iter_mut().zip(&products[column as usize * N..]) {
                            *u = f64::plus_product(simd, *u, value, *product);
                        }
                    }
                }
                for (up, g) in up.iter().zip(&*g) {
                    add_differences::<S, D, N>(simd, &mut u, up, g);
                }
                convert_transposed::<S, D, P, N>(simd, &self.basis.inside, &mut u);
                store::<S, N>(&mut x[component * N * n_parts..], part, &u);
            }
        }
    }
}
