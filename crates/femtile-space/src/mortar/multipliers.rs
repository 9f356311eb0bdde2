//! Multipliers that are biorthogonal to the functions of a side and reproduce polynomials.
//!
//! On a facet e let $\psi_i^e$ be the functions with $\int_e \psi_i^e \varphi_j = \delta_{ij}$. The means
//! $\psi_j^0 = \sum_e a_j^e \psi_j^e$ over the facets of a node j, $\sum_e a_j^e = 1$, are biorthogonal to continuous functions. With
//! $c_j(q) = \int q \varphi_j$ a polynomial is $q = \sum_j c_j(q) \psi_j$ if on each facet of each node i
//!
//! $$ r_i^e(q) = \int_e q \varphi_i - a_i^e c_i(q) $$
//!
//! vanishes, where $a_i^e = 0$ on the rim, whose nodes have no multiplier. On intervals and parallelograms with Gauss–Lobatto nodes and on
//! triangles of degree 1 it does for inner nodes and the degree p − 1; on triangles of a higher degree, on facets that are not affine and on
//! the rim it does not. There $r_i^e$ is written with inner nodes j nearby, $r_i^e(q) = \sum_j G_{ij}^e c_j(q)$ for all q of degree
//! p − 1, with the least coefficients, and
//!
//! $$ \psi_j = \psi_j^0 + \sum_{i,e} G_{ij}^e \psi_i^e . $$
//!
//! For inner nodes i the sum of $G_{ij}^e$ over the facets is zero, as that of $r_i^e$ is, so that biorthogonality stays; values $u_b$ of the
//! rim have the coefficients $-\sum_e G_{bj}^e$. Of a function v of the other side the value at a node j is
//! $\int \psi_j v$, in which $\int \psi_i^e v$ is the value at i of the projection of v onto the functions of e.
//!
//! Polynomials are those of the coordinates in the plane of a facet, interpolated at the nodes.

use femtile_device::parallel;

use super::SideNode;
use super::clip::{Polygon, dot, minus};
use super::moments::Moments;
use super::side::SideFacets;

/// The coefficients of the multiplier of each inner node.
pub(super) struct Multipliers {
    /// Facets, numbers of nodes among those of a facet, and coefficients of $\psi_i^e$.
    pub of_facets: Vec<Vec<(usize, usize, f64)>>,
    /// Nodes of the rim with the coefficients of their values.
    pub of_rim: Vec<Vec<(usize, f64)>>,
}

/// A term $G_{ij}^e$.
struct Term {
    /// j.
    node: usize,
    facet: usize,
    /// The number of i among the nodes of the facet.
    own: usize,
    coefficient: f64,
}

/// Residuals $r_i^e$ that are rounding, relative to $\int \varphi_i^2$.
const SMALL: f64 = 1e-11;

/// Most rings of facets around those of a node in which nodes are taken for its residual.
const RINGS: usize = 3;

/// The sine of the angle of moments of a polynomial to those of others, below which they are taken to depend on each other.
const INDEPENDENT: f64 = 1e-3;

impl Multipliers {
    /// Finds the multipliers of a side of elements of a degree.
    ///
    /// # Cost
    /// For each node with residuals the moments of its facets and of those around it, $O(n k^2)$ flops for n nodes and k polynomials.
    pub fn new(degree: usize, side: &SideFacets, moments: &[Moments], nodes: &[SideNode]) -> Self {
        let all = Side { degree, side, moments, nodes };
        let terms = parallel::map(nodes.len(), 8, |node| all.terms(node));
        let n = nodes.len();
        let mut found = Self { of_facets: vec![Vec::new(); n], of_rim: vec![Vec::new(); n] };
        for node in (0..n).filter(|&node| !side.is_rim[node]) {
            let shares = all.shares(node);
            let own = side.around[node].iter().zip(shares).map(|(&(facet, i), share)| (facet, i, share));
            found.of_facets[node].extend(own);
        }
        for (node, terms) in terms.iter().enumerate() {
            for term in terms {
                found.of_facets[term.node].push((term.facet, term.own, term.coefficient));
                if side.is_rim[node] {
                    found.of_rim[term.node].push((node, -term.coefficient));
                }
            }
        }
        found
    }
}

struct Side<'s> {
    degree: usize,
    side: &'s SideFacets,
    moments: &'s [Moments],
    nodes: &'s [SideNode],
}

impl Side<'_> {
    /// Returns $\int_e \varphi_i^2$.
    fn square(&self, facet: usize, own: usize) -> f64 {
        self.moments[facet].own[own * (self.side.nodes[facet].len() + 1)]
    }

    /// Returns $a_i^e$ for the facets of a node, all zero on the rim.
    fn shares(&self, node: usize) -> Vec<f64> {
        let squares = self.side.around[node].iter().map(|&(facet, own)| self.square(facet, own));
        let sum: f64 = squares.clone().sum();
        squares.map(|square| if self.side.is_rim[node] { 0.0 } else { square / sum }).collect()
    }

    /// Returns $\int_e q \varphi_i$ of the function with these values at nodes.
    fn moment(&self, facet: usize, own: usize, q: &dyn Fn(usize) -> f64) -> f64 {
        let nodes = &self.side.nodes[facet];
        let row = &self.moments[facet].own[own * nodes.len()..][..nodes.len()];
        row.iter().zip(nodes).map(|(entry, &node)| entry * q(node)).sum()
    }

    /// Returns the terms of the residuals of a node.
    fn terms(&self, node: usize) -> Vec<Term> {
        let (shares, around) = (self.shares(node), &self.side.around[node]);
        let mut terms = Vec::new();
        for group in self.side.groups(node).iter().filter(|group| self.side.is_taken[group[0]]) {
            let polynomials = Polynomials::new(self, node, group);
            let n = polynomials.exponents(self.degree - 1).len();
            let mut residuals = Vec::new();
            let mut is_needed = false;
            for (&at, share) in around.iter().zip(&shares).filter(|(at, _)| group.contains(&at.0)) {
                let residual = |k: usize| {
                    let q = |node: usize| polynomials.value(k, self.nodes[node].point);
                    let whole =
                        || around.iter().map(|&(facet, own)| self.moment(facet, own, &q)).sum::<f64>();
                    self.moment(at.0, at.1, &q) - if *share == 0.0 { 0.0 } else { share * whole() }
                };
                let of_facet: Vec<f64> = (0..n).map(residual).collect();
                is_needed |= of_facet.iter().any(|r| r.abs() > SMALL * self.square(at.0, at.1));
                residuals.push((at, of_facet));
            }
            if is_needed && let Some((others, basis)) = self.basis(&polynomials, group) {
                for ((facet, own), residual) in residuals {
                    let coefficients = basis.least(&residual);
                    let term = |(&node, coefficient)| Term { node, facet, own, coefficient };
                    terms.extend(others.iter().zip(coefficients).map(term));
                }
            }
        }
        terms
    }

    /// Returns inner nodes near a group of facets, and a basis of the moments of polynomials there: of the highest degree that they
    /// determine.
    fn basis(&self, polynomials: &Polynomials, group: &[usize]) -> Option<(Vec<usize>, Rows)> {
        for degree in (0..self.degree).rev() {
            let n = polynomials.exponents(degree).len();
            let mut facets = group.to_vec();
            for _ in 0..=RINGS {
                let inner = facets.iter().flat_map(|&facet| &self.side.nodes[facet]);
                let mut inner: Vec<usize> = inner.copied().filter(|&node| !self.side.is_rim[node]).collect();
                inner.sort_unstable();
                inner.dedup();
                if inner.len() >= n {
                    let moment = |node: usize, k: usize| -> f64 {
                        let q = |node: usize| polynomials.value(k, self.nodes[node].point);
                        self.side.around[node].iter().map(|&(facet, own)| self.moment(facet, own, &q)).sum()
                    };
                    let row = |k: usize| inner.iter().map(|&node| moment(node, k)).collect();
                    if let Some(rows) = Rows::new((0..n).map(row)) {
                        return Some((inner, rows));
                    }
                }
                let beyond = facets.iter().flat_map(|&facet| &self.side.neighbours[facet]);
                facets.extend(beyond.copied().collect::<Vec<_>>());
                facets.sort_unstable();
                facets.dedup();
            }
        }
        None
    }
}

/// Monomials of the coordinates around a node in the plane of a facet.
struct Polynomials {
    origin: [f64; 3],
    /// Axes over the distance to the farthest corner.
    axes: [[f64; 3]; 2],
    d: usize,
    exponents: Vec<[i32; 2]>,
}

impl Polynomials {
    fn new(side: &Side<'_>, node: usize, group: &[usize]) -> Self {
        let origin = side.nodes[node].point;
        let corners = |facet: usize| &side.side.corners[facet];
        let d = if corners(group[0]).len() == 2 { 1 } else { 2 };
        let distances = group.iter().flat_map(|&facet| corners(facet)).map(|&corner| minus(corner, origin));
        let size = distances.map(|x| dot(x, x).sqrt()).fold(0.0, f64::max);
        let axes = Polygon::of(corners(group[0]).clone()).axes().map(|axis| axis.map(|x| x / size));
        let mut all = Self { origin, axes, d, exponents: Vec::new() };
        all.exponents = all.exponents(side.degree - 1);
        all
    }

    /// Returns the exponents up to a degree, by ascending degrees.
    fn exponents(&self, degree: usize) -> Vec<[i32; 2]> {
        let of_degree =
            |sum: i32| (0..=if self.d == 1 { 0 } else { sum }).map(move |second| [sum - second, second]);
        (0..=degree as i32).flat_map(of_degree).collect()
    }

    fn value(&self, k: usize, point: [f64; 3]) -> f64 {
        let from = minus(point, self.origin);
        let [s, t] = self.exponents[k];
        dot(self.axes[0], from).powi(s) * dot(self.axes[1], from).powi(t)
    }
}

/// Independent rows as orthonormal ones and a lower triangular matrix.
struct Rows {
    orthonormal: Vec<Vec<f64>>,
    factors: Vec<Vec<f64>>,
}

impl Rows {
    /// Orthogonalises rows one after the other; none if they depend on each other.
    fn new(rows: impl Iterator<Item = Vec<f64>>) -> Option<Self> {
        let mut found = Self { orthonormal: Vec::new(), factors: Vec::new() };
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for mut row in rows {
            let size = product(&row, &row).sqrt();
            let mut factors = vec![0.0; found.orthonormal.len()];
            // Twice is enough.
            for _ in 0..2 {
                for (factor, other) in factors.iter_mut().zip(&found.orthonormal) {
                    let share = product(&row, other);
                    row.iter_mut().zip(other).for_each(|(entry, other)| *entry -= share * other);
                    *factor += share;
                }
            }
            let left = product(&row, &row).sqrt();
            if left <= INDEPENDENT * size {
                return None;
            }
            factors.push(left);
            found.orthonormal.push(row.iter().map(|entry| entry / left).collect());
            found.factors.push(factors);
        }
        Some(found)
    }

    /// Returns the least vector whose products with the rows are given, of which those beyond the rows are left out.
    fn least(&self, products: &[f64]) -> Vec<f64> {
        let mut shares: Vec<f64> = Vec::new();
        for (factors, product) in self.factors.iter().zip(products) {
            let known: f64 = factors.iter().zip(&shares).map(|(factor, share)| factor * share).sum();
            shares.push((product - known) / factors[shares.len()]);
        }
        let mut least = vec![0.0; self.orthonormal[0].len()];
        for (row, share) in self.orthonormal.iter().zip(&shares) {
            least.iter_mut().zip(row).for_each(|(sum, entry)| *sum += share * entry);
        }
        least
    }
}
