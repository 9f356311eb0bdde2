//! Degrees of freedom that are linear functions of others.

use crate::SpaceError;

/// A linear relation $u_i = \sum_j c_j u_j + g$ of degrees of freedom.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinearRelation {
    /// The degree of freedom i that it determines.
    pub dof: u32,
    /// Other degrees of freedom j with their coefficients; none for a Dirichlet value.
    pub terms: Vec<(u32, f64)>,
    /// The constant g.
    pub constant: f64,
}

/// Linear constraints $u_i = \sum_j c_{ij} u_j + g_i$ for a set of degrees of freedom i, where no j is constrained.
///
/// Dirichlet values have no terms; sides that follow others have one where meshes match, else several. With the matrix C of the
/// coefficients, the system on the free unknowns is $C^\mathsf{T} A C$, symmetric if A is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinearConstraints {
    n_dofs: usize,
    /// The constrained degrees of freedom, ascending.
    dofs: Vec<u32>,
    /// Begin of the terms of each, and the end of all.
    offsets: Vec<usize>,
    terms: Vec<(u32, f64)>,
    constants: Vec<f64>,
    /// One bit per degree of freedom.
    mask: Vec<u64>,
}

impl LinearConstraints {
    /// Constrains none of `n_dofs` degrees of freedom.
    pub fn none(n_dofs: usize) -> Self {
        Self { n_dofs, offsets: vec![0], mask: vec![0; n_dofs.div_ceil(64)], ..Self::default() }
    }

    /// Creates constraints from relations among `n_dofs` degrees of freedom.
    ///
    /// Terms with a degree of freedom that is constrained itself are replaced by its own relation. Several relations of one
    /// degree of freedom have to agree up to rounding after that.
    ///
    /// # Errors
    /// [`SpaceError::NoSuchDof`] for a number beyond `n_dofs`, [`SpaceError::ConstraintNotFinite`] for a coefficient or constant,
    /// [`SpaceError::ConstraintCircle`] if a degree of freedom depends on itself, [`SpaceError::ContradictoryConstraints`] for
    /// relations that disagree.
    pub fn new(n_dofs: usize, relations: &[LinearRelation]) -> Result<Self, SpaceError> {
        let checked =
            relations.iter().map(|relation| Ok((relation.dof, Sum::of_relation(relation, n_dofs)?)));
        let mut given = checked.collect::<Result<Vec<_>, _>>()?;
        given.sort_by_key(|(dof, _)| *dof);
        let given = Given(given.chunk_by(|(a, _), (b, _)| a == b).collect());
        // Sums of constants that cancel leave their rounding.
        let size = relations.iter().map(|relation| relation.constant.abs()).fold(0.0, f64::max);
        let mut resolved = vec![Sum::default(); given.0.len()];
        for place in given.order()? {
            let mut sums = given.0[place].iter().map(|(_, sum)| given.substitute(sum, &resolved));
            let first = sums.next().unwrap_or_default();
            if sums.any(|other| !first.agrees(&other, size)) {
                return Err(SpaceError::ContradictoryConstraints { dof: given.dof(place) });
            }
            resolved[place] = first;
        }
        let mut constraints = Self::none(n_dofs);
        for (place, Sum { terms, constant }) in resolved.into_iter().enumerate() {
            let dof = given.dof(place);
            constraints.dofs.push(dof);
            constraints.terms.extend(terms);
            constraints.offsets.push(constraints.terms.len());
            constraints.constants.push(constant);
            constraints.mask[dof as usize / 64] |= 1 << (dof % 64);
        }
        Ok(constraints)
    }

    /// Returns the number of degrees of freedom, constrained or not.
    pub fn n_dofs(&self) -> usize {
        self.n_dofs
    }

    /// Returns the constrained degrees of freedom, ascending.
    pub fn dofs(&self) -> &[u32] {
        &self.dofs
    }

    /// Returns whether a degree of freedom is constrained.
    ///
    /// # Panics
    /// If there is no degree of freedom of that number.
    pub fn contains(&self, dof: u32) -> bool {
        self.mask[dof as usize / 64] >> (dof % 64) & 1 == 1
    }

    /// Returns the terms $(j, c_{ij})$ of a constrained degree of freedom i, ascending.
    pub fn terms(&self, dof: u32) -> Option<&[(u32, f64)]> {
        self.place(dof).map(|place| self.terms_at(place))
    }

    /// Returns the constant $g_i$ of a constrained degree of freedom: its value if it has no terms.
    pub fn value(&self, dof: u32) -> Option<f64> {
        self.place(dof).map(|place| self.constants[place])
    }

    /// Returns whether a constrained degree of freedom depends on others.
    pub fn combines_dofs(&self) -> bool {
        !self.terms.is_empty()
    }

    fn place(&self, dof: u32) -> Option<usize> {
        self.dofs.binary_search(&dof).ok()
    }

    fn terms_at(&self, place: usize) -> &[(u32, f64)] {
        &self.terms[self.offsets[place]..self.offsets[place + 1]]
    }

    /// Sets the constrained entries, $u_i = \sum_j c_{ij} u_j + g_i$.
    ///
    /// # Panics
    /// Unless `u` has one entry per degree of freedom.
    pub fn impose(&self, u: &mut [f64]) {
        self.set(u, 1.0);
    }

    /// Sets the constrained entries without the constants, $u_i = \sum_j c_{ij} u_j$.
    ///
    /// # Panics
    /// Unless `u` has one entry per degree of freedom.
    pub fn distribute(&self, u: &mut [f64]) {
        self.set(u, 0.0);
    }

    fn set(&self, u: &mut [f64], factor: f64) {
        assert_eq!(u.len(), self.n_dofs, "degrees of freedom of a vector");
        for (place, &dof) in self.dofs.iter().enumerate() {
            let sum: f64 = self.terms_at(place).iter().map(|&(other, c)| c * u[other as usize]).sum();
            u[dof as usize] = sum + factor * self.constants[place];
        }
    }

    /// Adds constrained entries to those that they depend on, $r_j \mathrel{+}= c_{ij} r_i$, and sets them to zero: the
    /// transpose of [`Self::distribute`].
    ///
    /// # Panics
    /// Unless `r` has one entry per degree of freedom.
    pub fn distribute_transpose(&self, r: &mut [f64]) {
        assert_eq!(r.len(), self.n_dofs, "degrees of freedom of a vector");
        for (place, &dof) in self.dofs.iter().enumerate() {
            let entry = std::mem::take(&mut r[dof as usize]);
            self.terms_at(place).iter().for_each(|&(other, c)| r[other as usize] += c * entry);
        }
    }
}

/// The right side of a relation: terms by ascending degrees of freedom, none of them zero, and the constant.
#[derive(Debug, Clone, Default)]
struct Sum {
    terms: Vec<(u32, f64)>,
    constant: f64,
}

impl Sum {
    /// Adds the terms of each degree of freedom.
    fn new(mut terms: Vec<(u32, f64)>, constant: f64) -> Self {
        terms.sort_by_key(|(dof, _)| *dof);
        let of_dof = terms.chunk_by(|(a, _), (b, _)| a == b);
        let added = of_dof.map(|terms| (terms[0].0, terms.iter().map(|(_, c)| c).sum::<f64>()));
        Self { terms: added.filter(|(_, c)| *c != 0.0).collect(), constant }
    }

    fn of_relation(relation: &LinearRelation, n_dofs: usize) -> Result<Self, SpaceError> {
        let &LinearRelation { dof, ref terms, constant } = relation;
        let numbers = terms.iter().map(|(other, _)| *other).chain([dof]);
        if let Some(dof) = numbers.into_iter().find(|&number| number as usize >= n_dofs) {
            return Err(SpaceError::NoSuchDof { dof, n_dofs });
        }
        let values = terms.iter().map(|(_, c)| *c).chain([constant]);
        if let Some(value) = values.into_iter().find(|value| !value.is_finite()) {
            return Err(SpaceError::ConstraintNotFinite { dof, value });
        }
        Ok(Self::new(terms.clone(), constant))
    }

    /// Returns whether both are equal up to rounding, with constants of a size.
    fn agrees(&self, other: &Self, size: f64) -> bool {
        let is_near = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(b.abs());
        let has = |sum: &Self, dof: u32, c: f64| {
            let place = sum.terms.binary_search_by_key(&dof, |term| term.0);
            is_near(c, place.map_or(0.0, |place| sum.terms[place].1))
        };
        let within = |one: &Self, all: &Self| one.terms.iter().all(|&(dof, c)| has(all, dof, c));
        (self.constant - other.constant).abs() <= ROUNDING * size
            && within(self, other)
            && within(other, self)
    }
}

/// Relative difference up to which two relations agree: orders of substitution round differently.
const ROUNDING: f64 = 1e-12;

/// Relations by ascending degrees of freedom, those of one together.
struct Given<'a>(Vec<&'a [(u32, Sum)]>);

impl Given<'_> {
    fn dof(&self, place: usize) -> u32 {
        self.0[place][0].0
    }

    fn place(&self, dof: u32) -> Option<usize> {
        self.0.binary_search_by_key(&dof, |relations| relations[0].0).ok()
    }

    /// Returns the places of all constrained degrees of freedom, each after those that its relations name.
    fn order(&self) -> Result<Vec<usize>, SpaceError> {
        #[derive(Clone, Copy)]
        enum State {
            New,
            Open,
            Done,
        }
        let named = |place: usize| -> Vec<usize> {
            let terms = self.0[place].iter().flat_map(|(_, sum)| &sum.terms);
            terms.filter_map(|(dof, _)| self.place(*dof)).collect()
        };
        let mut order = Vec::with_capacity(self.0.len());
        let mut states = vec![State::New; self.0.len()];
        // The places on the way from the first to the current one, each with those that are left to follow.
        let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
        for first in 0..self.0.len() {
            if matches!(states[first], State::New) {
                states[first] = State::Open;
                path.push((first, named(first)));
            }
            while let Some((place, left)) = path.last_mut() {
                let Some(next) = left.pop() else {
                    states[*place] = State::Done;
                    order.push(*place);
                    path.pop();
                    continue;
                };
                match states[next] {
                    State::New => {
                        states[next] = State::Open;
                        path.push((next, named(next)));
                    }
                    State::Open => return Err(SpaceError::ConstraintCircle { dof: self.dof(next) }),
                    State::Done => {}
                }
            }
        }
        Ok(order)
    }

    /// Replaces constrained degrees of freedom in a sum by their resolved relations.
    fn substitute(&self, sum: &Sum, resolved: &[Sum]) -> Sum {
        let (mut terms, mut constant) = (Vec::new(), sum.constant);
        for &(dof, c) in &sum.terms {
            let Some(place) = self.place(dof) else {
                terms.push((dof, c));
                continue;
            };
            constant += c * resolved[place].constant;
            terms.extend(resolved[place].terms.iter().map(|&(other, factor)| (other, c * factor)));
        }
        Sum::new(terms, constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(dof: u32, terms: &[(u32, f64)], constant: f64) -> LinearRelation {
        LinearRelation { dof, terms: terms.to_vec(), constant }
    }

    #[test]
    fn values_and_chains_are_imposed_in_any_order_of_relations() {
        let relations = [
            relation(0, &[(3, 2.0), (4, -1.0)], 1.0),
            relation(3, &[(5, 0.5), (6, 0.25), (6, 0.25)], -2.0),
            relation(5, &[(2, 4.0)], 0.0),
            relation(4, &[], 7.0),
        ];
        for rotation in 0..4 {
            let mut relations = relations.to_vec();
            relations.rotate_left(rotation);
            let constraints = LinearConstraints::new(7, &relations).unwrap();
            assert_eq!(constraints.dofs(), [0, 3, 4, 5]);
            assert_eq!(constraints.terms(0).unwrap(), [(2, 4.0), (6, 1.0)]);
            assert_eq!(
                (constraints.value(0), constraints.value(4), constraints.value(2)),
                (Some(-10.0), Some(7.0), None)
            );
            assert!(constraints.contains(5) && !constraints.contains(6));
            let mut u = [f64::NAN, 10.0, 3.0, f64::NAN, f64::NAN, f64::NAN, 8.0];
            constraints.impose(&mut u);
            assert_eq!(u, [10.0, 10.0, 3.0, 8.0, 7.0, 12.0, 8.0]);
        }
    }

    #[test]
    fn transposed_distribution_is_the_adjoint() {
        let n = 101;
        let random = |i: usize| (i * i * 7919 % 1009) as f64 / 1009.0 - 0.5;
        // Every third degree of freedom depends on lower ones, some of which are constrained.
        let relations: Vec<LinearRelation> = (5..n)
            .step_by(3)
            .map(|i| {
                relation(i as u32, &[(i as u32 - 3, random(i)), (i as u32 / 2, random(2 * i))], random(i))
            })
            .collect();
        let constraints = LinearConstraints::new(n, &relations).unwrap();
        let (u, r): (Vec<f64>, Vec<f64>) = (0..n).map(|i| (random(i + 3), random(5 * i + 1))).unzip();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (mut extended, mut gathered) = (u.clone(), r.clone());
        constraints.distribute(&mut extended);
        constraints.distribute_transpose(&mut gathered);
        assert!(constraints.dofs().iter().all(|&dof| gathered[dof as usize] == 0.0));
        assert!((dot(&extended, &r) - dot(&u, &gathered)).abs() < 1e-13);
        let mut imposed = u.clone();
        constraints.impose(&mut imposed);
        for relation in &relations {
            let sum: f64 = relation.terms.iter().map(|&(dof, c)| c * imposed[dof as usize]).sum();
            assert!((imposed[relation.dof as usize] - sum - relation.constant).abs() < 1e-14);
        }
    }

    #[test]
    fn circles_are_refused_with_a_member() {
        let circle = [
            relation(1, &[(2, 1.0)], 0.0),
            relation(2, &[(4, 1.0)], 0.0),
            relation(4, &[(5, 1.0), (3, 1.0)], 0.0),
            relation(5, &[(2, 0.5)], 0.0),
        ];
        let error = LinearConstraints::new(6, &circle).unwrap_err();
        let SpaceError::ConstraintCircle { dof } = error else { panic!("{error}") };
        assert!([2, 4, 5].contains(&dof));
        let own = [relation(0, &[(0, 1.0)], 0.0)];
        assert_eq!(LinearConstraints::new(1, &own).unwrap_err(), SpaceError::ConstraintCircle { dof: 0 });
        let cancelled = [relation(0, &[(1, 1.0), (0, 1.0), (0, -1.0)], 0.0)];
        assert!(LinearConstraints::new(2, &cancelled).is_ok());
    }

    #[test]
    fn relations_of_one_dof_may_repeat_but_not_disagree() {
        // The corner of a doubly periodic square is tied to both of its neighbours.
        let square = [
            relation(3, &[(1, 1.0)], 0.0),
            relation(3, &[(2, 1.0)], 0.0),
            relation(1, &[(0, 1.0)], 0.0),
            relation(2, &[(0, 1.0)], 0.0),
            relation(1, &[(0, 1.0)], 0.0),
        ];
        let constraints = LinearConstraints::new(4, &square).unwrap();
        assert_eq!(constraints.terms(3).unwrap(), [(0, 1.0)]);
        let refused = |relations: &[LinearRelation]| LinearConstraints::new(4, relations).unwrap_err();
        assert_eq!(refused(&square[..3]), SpaceError::ContradictoryConstraints { dof: 3 });
        let values = [relation(2, &[], 1.0), relation(2, &[], 1.5)];
        assert_eq!(refused(&values), SpaceError::ContradictoryConstraints { dof: 2 });
    }

    #[test]
    fn numbers_that_cannot_be_used_are_named() {
        let refused = |relation: LinearRelation| LinearConstraints::new(3, &[relation]).unwrap_err();
        assert_eq!(refused(relation(3, &[], 0.0)), SpaceError::NoSuchDof { dof: 3, n_dofs: 3 });
        assert_eq!(refused(relation(0, &[(7, 1.0)], 0.0)), SpaceError::NoSuchDof { dof: 7, n_dofs: 3 });
        let error = refused(relation(1, &[(0, f64::INFINITY)], 0.0));
        assert_eq!(error, SpaceError::ConstraintNotFinite { dof: 1, value: f64::INFINITY });
    }

    #[test]
    fn without_relations_vectors_stay_as_they_are() {
        for n in [0, 1, 67] {
            let constraints = LinearConstraints::new(n, &[]).unwrap();
            assert_eq!(constraints, LinearConstraints::none(n));
            let given: Vec<f64> = (0..n).map(|i| i as f64 - 3.0).collect();
            let mut u = given.clone();
            constraints.impose(&mut u);
            constraints.distribute_transpose(&mut u);
            assert_eq!(u, given);
        }
    }
}
