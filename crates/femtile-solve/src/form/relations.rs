//! Relations of unknowns from sides that follow others, from floating conductors and Dirichlet values.

use femtile_space::{LinearConstraints, LinearRelation, Space, SpaceError};

use super::FormProblem;
use super::given::Terms;
use super::ties::{Rotation, TiedDof};
use crate::{Key, SolveError, below};

/// Difference of values that are the same, relative to the largest ones.
const ROUNDING: f64 = 1e-9;

/// Coefficients of rotations that are rounding.
const SMALL: f64 = 1e-12;

/// Unknowns that differ by constants, $u_i = u_{parent(i)} + g_i$, as a forest.
struct Classes {
    parent: Vec<u32>,
    offset: Vec<f64>,
}

impl Classes {
    fn new(n: usize) -> Self {
        Self { parent: (0..n as u32).collect(), offset: vec![0.0; n] }
    }

    /// Returns the root of an unknown, and the difference from it.
    fn find(&mut self, unknown: u32) -> (u32, f64) {
        let (mut root, mut sum, mut path) = (unknown, 0.0, Vec::new());
        while self.parent[root as usize] != root {
            path.push(root);
            sum += self.offset[root as usize];
            root = self.parent[root as usize];
        }
        let mut left = sum;
        for on_path in path {
            let own = std::mem::replace(&mut self.offset[on_path as usize], left);
            self.parent[on_path as usize] = root;
            left -= own;
        }
        (root, sum)
    }

    /// Makes an unknown follow another one; returns by how much that contradicts what is known already.
    fn unite(&mut self, follower: u32, other: u32, difference: f64) -> f64 {
        let ((root, own), (of_other, offset)) = (self.find(follower), self.find(other));
        if root == of_other {
            return (own - offset - difference).abs();
        }
        self.parent[root as usize] = of_other;
        self.offset[root as usize] = offset + difference - own;
        0.0
    }
}

/// A relation with several terms, or with a factor.
struct Combination<'t> {
    unknown: u32,
    terms: Terms,
    constant: f64,
    tied: &'t TiedDof,
}

/// The Dirichlet value or the floating part that determines a class.
#[derive(Clone, Copy, PartialEq)]
enum Anchor {
    /// An unknown with a Dirichlet value; that of the root.
    Value(u32, f64),
    /// An unknown of the floating part of this number.
    Floating(u32, usize),
}

/// The unknowns that are determined apart from relations, and the elements of degree 1.
pub(super) struct Unknowns<'a> {
    /// The Dirichlet value of each unknown.
    pub values: &'a [Option<f64>],
    /// For each component whether it has degree 1 in a space of a higher one.
    pub is_linear: &'a [bool],
    /// For each degree of freedom those at corners that a component of degree 1 follows.
    pub of_linear: &'a [Option<Terms>],
}

impl Unknowns<'_> {
    /// Returns whether a component of degree 1 has its value there from corners.
    pub fn follows_corners(&self, dof: u32, component: usize) -> bool {
        self.is_linear[component] && self.of_linear.get(dof as usize).is_some_and(Option::is_some)
    }

    /// Returns the relations of components of degree 1.
    pub fn of_corners(&self) -> Vec<LinearRelation> {
        let n = self.is_linear.len();
        let mut relations = Vec::new();
        for (dof, corners) in self.of_linear.iter().enumerate() {
            let Some(corners) = corners else { continue };
            for component in (0..n).filter(|&component| self.is_linear[component]) {
                let unknown = |dof: u32| dof * n as u32 + component as u32;
                let terms = corners.iter().map(|&(corner, factor)| (unknown(corner), factor)).collect();
                relations.push(LinearRelation { dof: unknown(dof as u32), terms, constant: 0.0 });
            }
        }
        relations
    }
}

impl FormProblem<'_> {
    /// Returns the degrees of freedom of each floating part.
    pub(super) fn floating_dofs(&self, space: &Space<'_>) -> Vec<Vec<u32>> {
        if self.floating.is_empty() {
            return Vec::new();
        }
        let (facets, mut dofs) = (space.boundary_facets(&self.facets), vec![0; space.element().n_dofs()]);
        let mut of_part = |own: &[u32]| {
            let mut all = Vec::new();
            for &facet in own {
                let side = facets[facet as usize];
                space.cell_dofs(side.position, &mut dofs);
                all.extend(space.element().facets()[side.facet].dofs.iter().map(|&local| dofs[local]));
            }
            all.sort_unstable();
            all.dedup();
            all
        };
        self.floating.iter().map(|floating| of_part(&floating.facets)).collect()
    }

    /// Returns the constraints of Dirichlet values, sides that follow others and floating parts. With `keeps_held` unknowns with
    /// Dirichlet values and those of floating parts are free, and others follow them: the transpose then brings the
    /// residual of all others to them.
    pub(super) fn relations(
        &self,
        space: &Space<'_>,
        unknowns: &Unknowns<'_>,
        keeps_held: bool,
    ) -> Result<LinearConstraints, SolveError> {
        let (tied, floating) = (self.tied(space)?, self.floating_dofs(space));
        let mut build = Build {
            problem: self,
            unknowns,
            classes: Classes::new(unknowns.values.len()),
            anchors: vec![None; unknowns.values.len()],
            is_floating: vec![false; unknowns.values.len()],
            combinations: Vec::new(),
            size: unknowns.values.iter().flatten().fold(0.0, |most: f64, value| most.max(value.abs())),
        };
        build.float(space, &floating)?;
        for tied in &tied.dofs {
            build.tie(tied)?;
        }
        build.anchor(space, &floating)?;
        let relations = build.relations(keeps_held)?;
        LinearConstraints::new(unknowns.values.len(), &relations).map_err(|error| match error {
            SpaceError::ConstraintCircle { dof } | SpaceError::ContradictoryConstraints { dof } => {
                let dof = dof / unknowns.is_linear.len() as u32;
                let path = match tied.dofs.iter().find(|tied| tied.dof == dof) {
                    Some(tied) => self.pairs[tied.pair].path.clone(),
                    None => vec!["periodic".into()],
                };
                let [x, y, z] = space.node_points()[dof as usize];
                let message = format!(
                    "the sides make u at ({x}, {y}, {z}) follow itself: leave a pair out, or let a side follow one other side alone"
                );
                SolveError::setting(&path, message)
            }
            other => other.into(),
        })
    }
}

/// Relations while they are collected.
struct Build<'a, 'm> {
    problem: &'a FormProblem<'m>,
    unknowns: &'a Unknowns<'a>,
    classes: Classes,
    /// The anchor of the class of each root.
    anchors: Vec<Option<Anchor>>,
    is_floating: Vec<bool>,
    combinations: Vec<Combination<'a>>,
    /// The largest value or jump.
    size: f64,
}

impl<'a> Build<'a, '_> {
    fn n(&self) -> usize {
        self.unknowns.is_linear.len()
    }

    /// Makes floating parts constant.
    fn float(&mut self, space: &Space<'_>, dofs: &[Vec<u32>]) -> Result<(), SolveError> {
        let n = self.n();
        for (number, dofs) in dofs.iter().enumerate() {
            let floating = &self.problem.floating[number];
            let components = (0..n).filter(|&component| floating.totals[component].is_some());
            for component in components {
                let mut first = None;
                for &dof in dofs.iter().filter(|&&dof| !self.unknowns.follows_corners(dof, component)) {
                    let unknown = dof * n as u32 + component as u32;
                    if std::mem::replace(&mut self.is_floating[unknown as usize], true) {
                        let [x, y, z] = space.node_points()[dof as usize];
                        let message = format!(
                            "two floating parts meet at ({x}, {y}, {z}), which makes them one: name both in one condition"
                        );
                        return Err(SolveError::setting(&below(&floating.path, "floating"), message));
                    }
                    let first = *first.get_or_insert(unknown);
                    if unknown != first {
                        self.classes.unite(unknown, first, 0.0);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the relations of the components of a degree of freedom of a side.
    fn tie(&mut self, tied: &'a TiedDof) -> Result<(), SolveError> {
        let (n, d) = (self.n(), self.problem.mesh.space_dimension());
        let rotation = self.problem.motion_of(tied.pair).rotation();
        let vectors = self.problem.vectors();
        let own = |component: usize| tied.dof * n as u32 + component as u32;
        let is_itself = matches!(tied.terms[..], [(dof, _)] if dof == tied.dof);
        for component in (0..n).filter(|&c| !self.unknowns.follows_corners(tied.dof, c)) {
            let constant = self.problem.jump_at(tied, component)?;
            self.size = self.size.max(constant.abs());
            let first = vectors[component].filter(|_| rotation.is_some());
            if is_itself {
                if constant.abs() > ROUNDING * self.size {
                    let [x, y, z] = tied.point;
                    let message = format!(
                        "is {constant} at ({x}, {y}, {z}), which is on both sides: it must be 0 there"
                    );
                    return Err(SolveError::setting(
                        &below(&self.problem.pairs[tied.pair].path, "jump"),
                        message,
                    ));
                }
                // A vector on the axis of a rotation has its direction.
                if let (Some(first), Some(Rotation { axis, .. })) = (first, rotation) {
                    let largest =
                        (0..3).max_by(|&a, &b| axis[a].abs().total_cmp(&axis[b].abs())).unwrap_or(2);
                    let at = component - first;
                    let terms = if largest < d && axis[at].abs() > SMALL {
                        vec![(own(first + largest), axis[at] / axis[largest])]
                    } else {
                        Vec::new()
                    };
                    if at != largest {
                        self.combinations.push(Combination {
                            unknown: own(component),
                            terms,
                            constant: 0.0,
                            tied,
                        });
                    }
                }
                continue;
            }
            let mut terms = Terms::new();
            // Where a value is given it has to agree with those at its point alone.
            let is_held = self.unknowns.values[own(component) as usize].is_some();
            for &(dof, c) in tied.terms(is_held || self.unknowns.is_linear[component]) {
                let unknown = |component: usize| dof * n as u32 + component as u32;
                match (first, rotation) {
                    (Some(first), Some(Rotation { matrix: r, .. })) => {
                        let row = (0..d).map(|b| (unknown(first + b), r[component - first][b] * c));
                        terms.extend(row.filter(|(_, c)| c.abs() > SMALL));
                    }
                    _ => terms.push((unknown(component), c)),
                }
            }
            let unknown = own(component);
            match terms[..] {
                [(other, 1.0)] => {
                    let gap = self.classes.unite(unknown, other, constant);
                    if gap > ROUNDING * self.size {
                        let [x, y, z] = tied.point;
                        let message = format!(
                            "the jump at ({x}, {y}, {z}) differs from that of other pairs of sides together by {gap:e}: jumps that belong to \
                             the same function are needed"
                        );
                        return Err(SolveError::setting(&self.problem.pairs[tied.pair].path, message));
                    }
                }
                _ => self.combinations.push(Combination { unknown, terms, constant, tied }),
            }
        }
        Ok(())
    }

    /// Finds what determines each class; refuses values that contradict each other.
    fn anchor(&mut self, space: &Space<'_>, floating: &[Vec<u32>]) -> Result<(), SolveError> {
        let n = self.n() as u32;
        let place = |unknown: u32| space.node_points()[(unknown / n) as usize];
        for (number, dofs) in floating.iter().enumerate() {
            for (&dof, component) in dofs.iter().flat_map(|dof| (0..n as usize).map(move |c| (dof, c))) {
                let unknown = dof * n + component as u32;
                if !self.is_floating[unknown as usize]
                    || self.problem.floating[number].totals[component].is_none()
                {
                    continue;
                }
                let (root, _) = self.classes.find(unknown);
                match self.anchors[root as usize] {
                    Some(Anchor::Floating(_, other)) if other != number => {
                        let [x, y, z] = place(unknown);
                        let message = format!(
                            "the floating part at ({x}, {y}, {z}) is one with another by pairs of sides: name both in one condition"
                        );
                        let path = below(&self.problem.floating[number].path, "floating");
                        return Err(SolveError::setting(&path, message));
                    }
                    Some(_) => {}
                    None => self.anchors[root as usize] = Some(Anchor::Floating(unknown, number)),
                }
            }
        }
        for unknown in 0..self.unknowns.values.len() as u32 {
            let Some(value) = self.unknowns.values[unknown as usize] else { continue };
            let (root, offset) = self.classes.find(unknown);
            let of_root = value - offset;
            match self.anchors[root as usize] {
                None => self.anchors[root as usize] = Some(Anchor::Value(unknown, of_root)),
                Some(Anchor::Value(other, found)) => {
                    if (found - of_root).abs() > ROUNDING * self.size {
                        let ([x, y, z], [a, b, c]) = (place(unknown), place(other));
                        let message = format!(
                            "the Dirichlet value {value} at ({x}, {y}, {z}) contradicts that at ({a}, {b}, {c}), from which the sides give {}",
                            found + offset
                        );
                        return Err(SolveError::setting(&self.path_of_tie(unknown), message));
                    }
                }
                Some(Anchor::Floating(_, number)) => {
                    let [x, y, z] = place(unknown);
                    let message = format!(
                        "a floating part meets Dirichlet values at ({x}, {y}, {z}): it has a value of its own"
                    );
                    let path = below(&self.problem.floating[number].path, "floating");
                    return Err(SolveError::setting(&path, message));
                }
            }
        }
        Ok(())
    }

    /// Returns the key of a pair that has an unknown.
    fn path_of_tie(&self, unknown: u32) -> Vec<Key> {
        let dof = unknown / self.n() as u32;
        let tied = self.problem.tied.get().into_iter().flat_map(|tied| &tied.dofs);
        let has = |tied: &&TiedDof| tied.dof == dof || tied.terms.iter().any(|(other, _)| *other == dof);
        tied.into_iter().find(has).map_or_else(
            || self.problem.first_relation().unwrap_or_default().to_vec(),
            |tied| self.problem.pairs[tied.pair].path.clone(),
        )
    }

    fn relations(mut self, keeps_held: bool) -> Result<Vec<LinearRelation>, SolveError> {
        let mut relations = self.unknowns.of_corners();
        for unknown in 0..self.unknowns.values.len() as u32 {
            let (dof, component) = (unknown / self.n() as u32, unknown as usize % self.n());
            if self.unknowns.follows_corners(dof, component) {
                continue;
            }
            let (root, offset) = self.classes.find(unknown);
            let value = self.unknowns.values[unknown as usize];
            let anchor = self.anchors[root as usize];
            let is_held = value.is_some() || self.is_floating[unknown as usize];
            let of = |other: u32, constant: f64| LinearRelation {
                dof: unknown,
                terms: vec![(other, 1.0)],
                constant,
            };
            let fixed = |constant: f64| LinearRelation { dof: unknown, terms: Vec::new(), constant };
            match anchor {
                _ if keeps_held && is_held => {}
                Some(Anchor::Value(other, _) | Anchor::Floating(other, _)) if keeps_held => {
                    relations.push(of(other, 0.0));
                }
                Some(Anchor::Value(_, of_root)) => relations.push(fixed(value.unwrap_or(of_root + offset))),
                _ if root != unknown => relations.push(of(root, offset)),
                _ => {}
            }
        }
        let mut has_relation = vec![false; self.unknowns.values.len()];
        for Combination { unknown, terms, constant, tied } in std::mem::take(&mut self.combinations) {
            let (root, offset) = self.classes.find(unknown);
            match self.anchors[root as usize] {
                Some(Anchor::Value(..)) => {
                    let mut is_fixed = |other: u32| {
                        let (root, _) = self.classes.find(other);
                        matches!(self.anchors[root as usize], Some(Anchor::Value(..)))
                    };
                    // Values on both sides are those that were given, as far as the mesh of the other side has them.
                    if !terms.iter().all(|&(other, _)| is_fixed(other)) {
                        let [x, y, z] = tied.point;
                        let message = format!(
                            "Dirichlet values hold at ({x}, {y}, {z}) on the side `to`, which follows `from`: give them on `from`, or on both"
                        );
                        return Err(SolveError::setting(&self.problem.pairs[tied.pair].path, message));
                    }
                }
                Some(Anchor::Floating(_, number)) => {
                    let [x, y, z] = tied.point;
                    let message = format!(
                        "a floating part meets a side that follows another one at ({x}, {y}, {z}), where the meshes do not match"
                    );
                    let path = below(&self.problem.floating[number].path, "floating");
                    return Err(SolveError::setting(&path, message));
                }
                // On edges between sides the first pair holds: interpolations along several ways differ.
                None if std::mem::replace(&mut has_relation[root as usize], true) => {}
                None => {
                    relations.push(LinearRelation { dof: root, terms, constant: constant - offset });
                }
            }
        }
        Ok(relations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_know_differences_along_any_way() {
        let mut classes = Classes::new(6);
        assert_eq!(classes.unite(1, 0, 2.0), 0.0);
        assert_eq!(classes.unite(3, 2, -1.0), 0.0);
        assert_eq!(classes.unite(4, 3, 0.5), 0.0);
        assert_eq!(classes.unite(3, 1, 4.0), 0.0);
        // u4 = u3 + 0.5 = u1 + 4.5 = u0 + 6.5.
        assert_eq!(classes.unite(4, 0, 6.5), 0.0);
        assert_eq!(classes.unite(0, 4, -6.0), 0.5);
        let (root, offset) = classes.find(2);
        let (same, of_zero) = classes.find(0);
        assert_eq!((root, offset - of_zero), (same, 7.0));
        assert_eq!(classes.find(5), (5, 0.0));
    }
}
