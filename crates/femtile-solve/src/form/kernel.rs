//! Functions on which an equation is zero: constants and rigid motions.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use femtile_device::parallel;
use femtile_expression::Shape;
use femtile_form::{Class, Dependence, Domain, Form, Integral, Integrand};
use femtile_linalg::eigen::{Dense, symmetric_eigen};
use femtile_operator::{DiscreteForm, State};
use femtile_space::{LinearConstraints, Space, SpaceError};

/// Sum of squares at the constrained unknowns below which a motion is free; rounding leaves 1e-10 of a million of them.
const FREE: f64 = 1e-8;

/// Part of the tangent of an interface applied to a motion that is rounding.
const ROUNDING: f64 = 1e-8;

/// The name of the constants.
pub(super) const CONSTANT: &str = "a constant";

/// Motions that nothing holds.
#[derive(Debug)]
pub(super) struct Free {
    /// In words.
    pub motions: Vec<String>,
    /// A place of the part of the mesh that has them, if there are several parts.
    pub at: Option<[f64; 3]>,
}

/// Constants of a scalar equation, rigid motions of displacements, each scaled to values of about 1.
pub(super) struct Motions {
    names: Vec<String>,
    /// One after the other: `[names][n_unknowns]`.
    vectors: Vec<Vec<f64>>,
    /// Those that the form itself holds: of a body of revolution all but the translation along its axis.
    held: Vec<usize>,
    /// Components that grow the circles around an axis, which holds them.
    radial: Vec<usize>,
    /// Whether there are several unknowns.
    are_several: bool,
}

impl Motions {
    /// Evaluates the motions of a form at the nodes of a space: rigid ones of unknowns that are displacements, a constant for each
    /// component of others beside them. A single unknown with several components that is no displacement has none.
    pub fn new(space: &Space<'_>, form: &Form, unknowns: &[(&str, Shape)]) -> Result<Self, SpaceError> {
        let (n, d) = (form.n_components(), form.dimension());
        if n == 1 {
            return Ok(Self {
                names: vec![CONSTANT.to_owned()],
                vectors: vec![vec![1.0; space.n_dofs()]],
                held: Vec::new(),
                radial: Vec::new(),
                are_several: false,
            });
        }
        let are_displacements = |own: &Range<usize>, shape: Shape| {
            shape == Shape::Vector(d) && couples(form, own) && !space.mesh().is_surface
        };
        if let [(_, shape)] = *unknowns
            && !are_displacements(&(0..n), shape)
        {
            return Ok(Self {
                names: Vec::new(),
                vectors: Vec::new(),
                held: Vec::new(),
                radial: Vec::new(),
                are_several: false,
            });
        }
        let places = scaled(&space.node_points());
        let constant = |own: usize| -> Vec<f64> {
            (0..places.len() * n).map(|i| f64::from(u8::from(i % n == own))).collect()
        };
        // The rotation in the plane of axes a and b moves x_b along a.
        let rotation = |first: usize, [a, b]: [usize; 2]| -> Vec<f64> {
            let mut vector = vec![0.0; places.len() * n];
            for (u, x) in vector.chunks_exact_mut(n).zip(&places) {
                (u[first + a], u[first + b]) = (-x[b], x[a]);
            }
            vector
        };
        let (mut names, mut vectors, mut first): (Vec<String>, _, _) = (Vec::new(), Vec::new(), 0);
        let (mut held, mut radial) = (Vec::new(), Vec::new());
        for &(unknown, shape) in unknowns {
            let own = first..first + shape.n_entries();
            first = own.end;
            vectors.extend(own.clone().map(constant));
            if !are_displacements(&own, shape) {
                names.extend(own.map(|_| format!("{CONSTANT} of {unknown}")));
                continue;
            }
            if space.is_axisymmetric() {
                held.extend([names.len(), names.len() + 2]);
                radial.push(own.start);
            }
            names.extend(["x", "y", "z"][..d].iter().map(|axis| format!("translation along {axis}")));
            if d == 2 {
                names.push("rotation in the plane".to_owned());
                vectors.push(rotation(own.start, [0, 1]));
            } else {
                names.extend(["x", "y", "z"].map(|axis| format!("rotation about {axis}")));
                vectors.extend([[1, 2], [2, 0], [0, 1]].map(|axes| rotation(own.start, axes)));
            }
        }
        Ok(Self { names, vectors, held, radial, are_several: unknowns.len() > 1 })
    }

    /// Returns the motions of the first part of the mesh that constraints and the terms of a form leave free; none if all are
    /// held.
    pub fn free(
        &self,
        discrete: DiscreteForm<'_>,
        constraints: &LinearConstraints,
    ) -> Result<Option<Free>, SpaceError> {
        let (space, form) = (discrete.space(), discrete.form());
        // λ, a Robin condition or springs.
        let is_interface = |own: &Integral| matches!(own.domain, Domain::Interface(_));
        let mut others = form.integrals().iter().filter(|own| !is_interface(own));
        if others.any(|integral| self.has_reaction(&integral.integrand, form.n_components())) {
            return Ok(None);
        }
        let mut classes = form.integrals().iter().map(|integral| integral.integrand.class());
        // The value of one of several unknowns beside a derivative of another may hold it.
        let may_hold = |class: &Class| class.convection.max(class.drift) != Dependence::Zero;
        if self.are_several && classes.any(may_hold) {
            return Ok(None);
        }
        let over_cells = form.integrals().iter().filter(|own| own.domain == Domain::Cells);
        let has = |of: fn(&Class) -> Dependence| {
            over_cells.clone().any(|own| of(own.integrand.class()) != Dependence::Zero)
        };
        let (has_convection, has_drift) = (has(|class| class.convection), has(|class| class.drift));
        let (m, n) = (self.vectors.len(), form.n_components());
        let Parts { of_dof, groups } = Parts::new(discrete, constraints);
        // The place of the first motion of each part among those of its group.
        let mut first = vec![(0, 0); of_dof.iter().map(|&part| part as usize + 1).max().unwrap_or(0)];
        for (group, parts) in groups.iter().enumerate() {
            // The motions of many parts are those of one, which no group has that is held at more than points.
            let own = |place: usize| if parts.len() > MOST_PARTS { 0 } else { place * m };
            parts.iter().enumerate().for_each(|(place, &part)| first[part as usize] = (group, own(place)));
        }
        let size = |parts: &Vec<u32>| if parts.len() > MOST_PARTS { m } else { parts.len() * m };
        // A motion that the cells leave free is one of the tangent, or of its transpose, with those rows.
        let places = PlacesOfMotions { first: &first, of_dof: &of_dof, n };
        let [rows, columns] = self.interface_rows(discrete, &places, groups.iter().map(size).collect());
        let mut held_by_interfaces = Vec::new();
        if !has_drift || has_convection {
            held_by_interfaces.push(rows);
        }
        if !has_convection {
            held_by_interfaces.push(columns);
        }
        let mut grams: Vec<Vec<Vec<f64>>> =
            groups.iter().map(|parts| vec![vec![0.0; size(parts)]; size(parts)]).collect();
        // A motion is free if it satisfies the constraints without their constants.
        let mut row: Vec<(usize, f64)> = Vec::new();
        for &unknown in constraints.dofs() {
            row.clear();
            let terms = constraints.terms(unknown).into_iter().flatten().map(|&(other, c)| (other, -c));
            let mut group = 0;
            for (unknown, c) in std::iter::once((unknown, 1.0)).chain(terms) {
                let (own, place) = first[of_dof[unknown as usize / n] as usize];
                group = own;
                row.extend((0..m).map(|i| (place + i, c * self.vectors[i][unknown as usize])));
            }
            row.sort_unstable_by_key(|(place, _)| *place);
            row.dedup_by(|next, kept| {
                kept.0 == next.0 && {
                    kept.1 += next.1;
                    true
                }
            });
            for &(i, of_row) in &row {
                row.iter().for_each(|&(j, of_column)| grams[group][i][j] += of_row * of_column);
            }
        }
        for (group, (parts, mut gram)) in groups.iter().zip(grams).enumerate() {
            for place in (0..gram.len()).step_by(m.max(1)) {
                self.held.iter().for_each(|&motion| gram[place + motion][place + motion] += 1.0);
            }
            let with_rows = |rows: &Vec<Vec<Vec<f64>>>| {
                let mut gram = gram.clone();
                for row in &rows[group] {
                    let places = gram.iter_mut().zip(row);
                    places.for_each(|(own, x)| own.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y));
                }
                null_space(&gram, FREE)
            };
            let Some(basis) = held_by_interfaces.iter().map(with_rows).find(|basis| !basis.is_empty()) else {
                continue;
            };
            // Of parts that are not all free, one that is.
            let moves = |place: usize| {
                let own =
                    |motion: &Vec<f64>| motion[place * m..(place + 1) * m].iter().any(|x| x.abs() > 1e-4);
                parts.len() > MOST_PARTS || basis.iter().any(own)
            };
            let is_free: Vec<bool> = (0..parts.len()).map(moves).collect();
            let is_one_of =
                |part: &u32| parts.iter().zip(&is_free).any(|(own, is_free)| own == part && *is_free);
            let are_several = groups.len() > 1 || is_free.contains(&false);
            let dof = of_dof.iter().position(is_one_of).filter(|_| are_several);
            let at = dof.map(|dof| space.node_points()[dof]);
            return Ok(Some(Free { motions: self.describe(basis), at }));
        }
        Ok(None)
    }

    /// Returns for each group orthonormal rows that the tangent of the interfaces, and its transpose, apply to its motions: one is free
    /// if all are zero. Factors that depend on u are those at values around 1.
    ///
    /// # Cost
    /// One pass over the points of the interfaces; a number for each unknown there and each motion of its group.
    fn interface_rows(
        &self,
        discrete: DiscreteForm<'_>,
        places: &PlacesOfMotions<'_>,
        sizes: Vec<usize>,
    ) -> [Vec<Vec<Vec<f64>>>; 2] {
        let mut found = [BTreeMap::new(), BTreeMap::new()];
        let mut alone: Vec<(usize, Row)> = Vec::new();
        if !joined(discrete.form()).is_empty() {
            // No two values are the same.
            let value = |i: usize| 0.5 + (i as f64 * 0.618_033_988_749_894_9).fract();
            let u: Vec<f64> = (0..discrete.n_unknowns()).map(value).collect();
            let state = State { time: 1.0, ..State::of(&u) };
            let mut add = |which: usize, unknown: u32, of: u32, value: f64| {
                let (group, place) = places.of(of);
                let new = || (group, Row { values: vec![0.0; sizes[group]], bound: 0.0 });
                let (_, Row { values, bound }) = found[which].entry(unknown).or_insert_with(new);
                *bound += value.abs();
                let motions = values[place..].iter_mut().zip(&self.vectors);
                motions.for_each(|(sum, motion)| *sum += value * motion[of as usize]);
            };
            let entries = discrete.for_interface_entries(&state, &mut |row, column, value| {
                add(0, row, column, value);
                add(1, column, row, value);
            });
            if entries.is_err() {
                // A factor has no value there: as if both sides had the same motions.
                found = [BTreeMap::new(), BTreeMap::new()];
                alone = self.rows_of_sides(discrete, places, &sizes);
            }
        }
        found.map(|rows| {
            let mut of_groups = vec![Vec::new(); sizes.len()];
            let all = alone.iter().cloned().chain(rows.into_values());
            all.for_each(|(group, row)| row.extend(&mut of_groups[group]));
            of_groups
        })
    }

    /// Returns rows that both sides of interfaces have the same motions.
    fn rows_of_sides(
        &self,
        discrete: DiscreteForm<'_>,
        places: &PlacesOfMotions<'_>,
        sizes: &[usize],
    ) -> Vec<(usize, Row)> {
        let dofs = pairs_of_dofs(discrete, &joined(discrete.form()));
        let mut known: Vec<[(usize, usize); 2]> =
            dofs.into_iter().map(|pair| pair.map(|dof| places.of(dof * places.n as u32))).collect();
        known.sort_unstable();
        known.dedup();
        let of = |[(group, first), (_, other)]: [(usize, usize); 2]| {
            (0..self.vectors.len()).map(move |motion| {
                let mut values = vec![0.0; sizes[group]];
                values[first + motion] += 1.0;
                values[other + motion] -= 1.0;
                (group, Row { values, bound: 1.0 })
            })
        };
        known.into_iter().flat_map(of).collect()
    }

    /// Returns whether the form has a reaction, apart from the hoop strain u_r/r of a body of revolution.
    fn has_reaction(&self, integrand: &Integrand, n_components: usize) -> bool {
        let stride = 1 + integrand.dimension();
        let is_value = |slot: &usize| slot.is_multiple_of(stride);
        let is_radial = |slot: &usize| self.radial.contains(&(slot / stride % n_components));
        integrand.entries().iter().any(|pair| pair.iter().all(is_value) && !pair.iter().all(is_radial))
    }

    /// Returns the names of a basis of combinations of motions: rotations where a combination has a part of one, translations
    /// else.
    fn describe(&self, mut basis: Vec<Vec<f64>>) -> Vec<String> {
        let mut found = Vec::new();
        let n_motions = basis.first().map_or(0, Vec::len);
        for motion in (0..n_motions).rev() {
            let largest =
                (0..basis.len()).max_by(|&a, &b| basis[a][motion].abs().total_cmp(&basis[b][motion].abs()));
            let Some(pivot) = largest.filter(|&row| basis[row][motion].abs() > 1e-4) else { continue };
            let row = basis.swap_remove(pivot);
            for other in &mut basis {
                let factor = other[motion] / row[motion];
                other.iter_mut().zip(&row).for_each(|(x, pivot)| *x -= factor * pivot);
            }
            found.push(self.names[motion % self.names.len()].clone());
        }
        found.reverse();
        // Those of several parts have the same names.
        let mut told = Vec::new();
        found.into_iter().for_each(|name: String| {
            if !told.contains(&name) {
                told.push(name)
            }
        });
        told
    }

    /// Returns the motions with zeros at the constrained unknowns, one after the other.
    pub fn near_nullspace(&self, constraints: &LinearConstraints) -> Vec<f64> {
        let mut all = self.vectors.concat();
        let n = constraints.n_dofs();
        for vector in all.chunks_exact_mut(n.max(1)) {
            constraints.dofs().iter().for_each(|&dof| vector[dof as usize] = 0.0);
        }
        all
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the motions at some unknowns, one unknown after the other, with zeros at the constrained ones.
    pub fn rows_of(&self, unknowns: &[u32], constraints: &LinearConstraints) -> Vec<f64> {
        let value = |unknown: u32, vector: &Vec<f64>| match constraints.contains(unknown) {
            true => 0.0,
            false => vector[unknown as usize],
        };
        let row = |&unknown: &u32| self.vectors.iter().map(move |vector| value(unknown, vector));
        unknowns.iter().flat_map(row).collect()
    }
}

/// Returns whether an entry of the tangent couples two of some components.
fn couples(form: &Form, own: &Range<usize>) -> bool {
    let (n, stride) = (form.n_components(), 1 + form.dimension());
    let component = |slot: usize| slot / stride % n;
    let mut entries = form.integrals().iter().flat_map(|integral| integral.integrand.entries());
    entries.any(|&[row, column]| {
        let [row, column] = [row, column].map(component);
        row != column && own.contains(&row) && own.contains(&column)
    })
}

/// Returns the pairs of facets between which there is a flux.
fn joined(form: &Form) -> Vec<[u32; 2]> {
    let with_flux = form.integrals().iter().filter(|own| !own.integrand.entries().is_empty());
    let pairs = with_flux.filter_map(|own| match &own.domain {
        Domain::Interface(pairs) => Some(pairs.as_slice()),
        _ => None,
    });
    pairs.flatten().copied().collect()
}

/// Returns a degree of freedom of the cell of each side of pairs of facets.
fn pairs_of_dofs(discrete: DiscreteForm<'_>, pairs: &[[u32; 2]]) -> Vec<[u32; 2]> {
    if pairs.is_empty() {
        return Vec::new();
    }
    let space = discrete.space();
    let (sides, mut dofs) = (space.boundary_facets(discrete.boundary()), vec![0; space.element().n_dofs()]);
    let mut of = |facet: u32| {
        space.cell_dofs(sides[facet as usize].position, &mut dofs);
        dofs[0]
    };
    pairs.iter().map(|pair| pair.map(&mut of)).collect()
}

/// The place of the motions of each part among those of its group.
struct PlacesOfMotions<'p> {
    /// The group of each part and the place of its first motion.
    first: &'p [(usize, usize)],
    /// The part of each degree of freedom.
    of_dof: &'p [u32],
    n: usize,
}

impl PlacesOfMotions<'_> {
    /// Returns the group of an unknown and the place of its first motion.
    fn of(&self, unknown: u32) -> (usize, usize) {
        self.first[self.of_dof[unknown as usize / self.n] as usize]
    }
}

/// A row of a matrix applied to motions.
#[derive(Debug, Clone)]
struct Row {
    values: Vec<f64>,
    /// The sum of the sizes of what was added.
    bound: f64,
}

impl Row {
    /// Adds the row to orthonormal ones, unless what they lack of it is rounding.
    fn extend(self, basis: &mut Vec<Vec<f64>>) {
        let Self { mut values, bound } = self;
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for own in basis.iter().chain(basis.iter()) {
            let along = product(own, &values);
            values.iter_mut().zip(own).for_each(|(x, own)| *x -= along * own);
        }
        let size = product(&values, &values).sqrt();
        if size > ROUNDING * bound {
            values.iter_mut().for_each(|x| *x /= size);
            basis.push(values);
        }
    }
}

/// Cells that a thread visits at least.
const CELLS: usize = 1 << 8;
/// Most parts of a group whose motions are independent.
const MOST_PARTS: usize = 16;

/// The connected parts of a mesh.
struct Parts {
    /// The part of each degree of freedom.
    of_dof: Vec<u32>,
    /// Parts that constraints or interfaces connect.
    groups: Vec<Vec<u32>>,
}

impl Parts {
    fn new(discrete: DiscreteForm<'_>, constraints: &LinearConstraints) -> Self {
        let (space, n_components) = (discrete.space(), discrete.form().n_components());
        let (forest, n) = (Forest::new(space.n_dofs()), space.element().n_dofs());
        parallel::map_with(
            space.n_cells(),
            CELLS,
            || vec![0; n],
            |dofs, position| {
                space.cell_dofs(position, dofs);
                dofs[1..].iter().for_each(|&dof| forest.unite(dofs[0], dof));
            },
        );
        let of_dof = forest.numbers();
        let forest = Forest::new(of_dof.iter().map(|&part| part as usize + 1).max().unwrap_or(0));
        let part = |unknown: u32| of_dof[unknown as usize / n_components];
        for &unknown in constraints.dofs() {
            let terms = constraints.terms(unknown).into_iter().flatten();
            terms.for_each(|&(other, _)| forest.unite(part(unknown), part(other)));
        }
        for [first, other] in pairs_of_dofs(discrete, &joined(discrete.form())) {
            forest.unite(of_dof[first as usize], of_dof[other as usize]);
        }
        let mut groups = Vec::new();
        for (part, group) in forest.numbers().into_iter().enumerate() {
            if group as usize == groups.len() {
                groups.push(Vec::new());
            }
            groups[group as usize].push(part as u32);
        }
        Self { of_dof, groups }
    }
}

/// Sets of numbers, united by any number of threads: the root of each is its lowest number.
struct Forest(Vec<AtomicU32>);

impl Forest {
    fn new(n: usize) -> Self {
        Self(parallel::map(n, parallel::CHEAP, |at| AtomicU32::new(at as u32)))
    }

    fn root(&self, mut at: u32) -> u32 {
        loop {
            let parent = self.0[at as usize].load(Ordering::Relaxed);
            if parent == at {
                return at;
            }
            // Parents only become lower, so an older one shortens the way as well.
            let next = self.0[parent as usize].load(Ordering::Relaxed);
            self.0[at as usize].fetch_min(next, Ordering::Relaxed);
            at = next;
        }
    }

    fn unite(&self, one: u32, other: u32) {
        let (mut one, mut other) = (self.root(one), self.root(other));
        while one != other {
            let (low, high) = (one.min(other), one.max(other));
            // Another thread may have given the higher root a parent.
            match self.0[high as usize].compare_exchange(high, low, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(parent) => (one, other) = (self.root(low), self.root(parent)),
            }
        }
    }

    /// Returns the number of the set of each entry, by the first ones.
    fn numbers(self) -> Vec<u32> {
        let roots = parallel::filter(self.0.len(), |at| self.root(at as u32) == at as u32);
        parallel::map(self.0.len(), parallel::CHEAP, |at| {
            let root = self.root(at as u32);
            roots.partition_point(|&other| other < root) as u32
        })
    }
}

/// Moves points to their middle and scales them to a mean distance of 1 from it.
fn scaled(points: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let n = points.len().max(1) as f64;
    let middle: [f64; 3] = std::array::from_fn(|axis| points.iter().map(|x| x[axis]).sum::<f64>() / n);
    let moved = |x: &[f64; 3]| -> [f64; 3] { std::array::from_fn(|axis| x[axis] - middle[axis]) };
    let moved: Vec<[f64; 3]> = points.iter().map(moved).collect();
    let squares: f64 = moved.iter().flatten().map(|x| x * x).sum();
    let size = (squares / n).sqrt().max(f64::MIN_POSITIVE);
    moved.iter().map(|x| x.map(|x| x / size)).collect()
}

/// Returns the eigenvectors of a small symmetric matrix whose eigenvalues are at most `bound`.
fn null_space(a: &[Vec<f64>], bound: f64) -> Vec<Vec<f64>> {
    let n = a.len();
    let (values, vectors) = symmetric_eigen(&Dense::of([n, n], |row, column| a[row][column]));
    let n_null = values.iter().filter(|value| **value <= bound).count();
    (0..n_null).map(|column| (0..n).map(|row| vectors[(row, column)]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_united_by_several_threads_are_numbered_by_their_first_members() {
        for n in [0, 1, 2, 7919, 100_003] {
            for stride in [1, 2, 3, 97] {
                // Each number with the one `stride` below, in an order that mixes them.
                let forest = Forest::new(n);
                parallel::for_each(n, 1, |i| {
                    let at = i * 7907 % n;
                    if at >= stride {
                        forest.unite(at as u32, (at - stride) as u32);
                    }
                });
                let expected: Vec<u32> = (0..n).map(|at| (at % stride) as u32).collect();
                assert!(forest.numbers() == expected, "{n} numbers, every {stride}");
            }
        }
    }

    #[test]
    fn the_null_space_of_a_small_matrix_is_found() {
        // vvᵀ + wwᵀ with v = (1, 1, 0), w = (0, 0, 2): the null space is (1, −1, 0).
        let a = vec![vec![1.0, 1.0, 0.0], vec![1.0, 1.0, 0.0], vec![0.0, 0.0, 4.0]];
        let found = null_space(&a, 1e-10);
        let [vector] = &found[..] else { panic!("{found:?}") };
        assert!((vector[0] + vector[1]).abs() < 1e-12 && vector[2].abs() < 1e-12);
        assert!((vector[0].abs() - 0.5_f64.sqrt()).abs() < 1e-12);
        assert!(null_space(&[vec![2.0, 1.0], vec![1.0, 2.0]], 1e-10).is_empty());
        assert_eq!(null_space(&vec![vec![0.0; 3]; 3], 1e-10).len(), 3);
    }
}
