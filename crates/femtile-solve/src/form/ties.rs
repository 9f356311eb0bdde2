//! Relations of the unknowns of sides: periodic sides, ties of meshes that do not match, floating conductors.

use std::sync::{Arc, OnceLock};

use femtile_expression::Shape;
use femtile_form::Coefficient;
use femtile_space::{CellFacet, Foot, Mortar, SideNode, SidePair, Space};

use super::FormProblem;
use super::given::{AtNodes, Terms};
use crate::coefficient::check_count;
use crate::{Key, Region, SolveError, Value, below, path_text};

/// How the points of a side are those of another one, with the jump of u between them.
#[derive(Debug, Clone, Default)]
pub struct Periodic {
    /// The map of points.
    pub map: SideMap,
    /// $u(x_{to}) - R\,u(x_{from})$ of each component, with the rotation R of vectors; none for zero.
    pub jump: Vec<Value>,
    /// The distance up to which points of the sides are the same; by default a hundredth of the size of a facet.
    pub tolerance: Option<f64>,
}

/// The map from a side to the one that is the same.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum SideMap {
    /// The translation between the middles of their bounding boxes.
    #[default]
    Found,
    /// A translation.
    Translation([f64; 3]),
    /// A rotation, which turns vectors too.
    Rotation {
        /// The direction of the axis, in the plane $(0, 0, 1)$.
        axis: [f64; 3],
        /// A point of the axis.
        centre: [f64; 3],
        /// The angle.
        degrees: f64,
    },
}

/// Sides of which one follows the other.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// The facets of the side that determines u.
    pub from: Vec<u32>,
    /// Those of the side that follows.
    pub to: Vec<u32>,
    motion: Motion,
    /// For each component, or none for zero.
    pub jump: Vec<Coefficient>,
    tolerance: Option<f64>,
    /// The setting that gives it.
    pub path: Vec<Key>,
}

/// A part of the boundary with one unknown value.
#[derive(Debug, Clone)]
pub(super) struct Floating {
    pub facets: Vec<u32>,
    /// For each component the flux into the body; none if the component is not constant there.
    pub totals: Vec<Option<f64>>,
    pub path: Vec<Key>,
}

/// The degrees of freedom that follow others by pairs of sides, in the order of the pairs.
#[derive(Debug, Default)]
pub(super) struct Tied {
    pub dofs: Vec<TiedDof>,
    /// Sides whose fluxes and orders are not those of the projection.
    warnings: Vec<String>,
}

/// A degree of freedom of a side that follows another one, $u_i = R \sum_j c_j u_j + g(x_i)$.
#[derive(Debug, Clone)]
pub(super) struct TiedDof {
    pub dof: u32,
    /// The number of its pair.
    pub pair: usize,
    pub cell: usize,
    pub tag: i32,
    pub point: [f64; 3],
    /// Degrees of freedom of the other side with their coefficients; one alone has exactly 1.
    pub terms: Terms,
    /// The same by interpolation at its point, if `terms` are those of a projection.
    pub at_point: Option<Terms>,
}

impl TiedDof {
    /// Returns the terms, or those of interpolation, as components with elements of degree 1 have in a space of a higher degree.
    pub fn terms(&self, is_interpolated: bool) -> &Terms {
        self.at_point.as_ref().filter(|_| is_interpolated).unwrap_or(&self.terms)
    }
}

/// The motion $x \mapsto R (x - c) + c + t$.
#[derive(Debug, Clone, Copy)]
pub(super) struct Motion {
    rotation: Option<Rotation>,
    centre: [f64; 3],
    shift: [f64; 3],
}

/// A rotation about an axis through the origin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rotation {
    /// R, by rows.
    pub matrix: [[f64; 3]; 3],
    /// The direction of the axis, of length 1.
    pub axis: [f64; 3],
}

/// Distance beyond which points are not the same, relative to the size of the facet.
const TOLERANCE: f64 = 1e-2;

/// The share of the way from a node to the middle of its facet that tells the two sides of an interface apart.
const BESIDE: f64 = 1e-3;

/// Coefficients so near 0 or 1 are the rounding of coordinates in files.
const SNAP: f64 = 1e-6;

/// Coefficients that are rounding.
const SMALL: f64 = 1e-12;

impl Motion {
    const NONE: Self = Self { rotation: None, centre: [0.0; 3], shift: [0.0; 3] };

    /// Returns the point that `x` is moved to.
    fn image(&self, x: [f64; 3]) -> [f64; 3] {
        let Self { centre, shift, .. } = self;
        let from: [f64; 3] = std::array::from_fn(|i| x[i] - centre[i]);
        let turned = match self.rotation {
            None => from,
            Some(Rotation { matrix: r, .. }) => {
                std::array::from_fn(|i| (0..3).map(|j| r[i][j] * from[j]).sum())
            }
        };
        std::array::from_fn(|i| turned[i] + centre[i] + shift[i])
    }

    /// Returns the point that is moved to `x`.
    fn origin(&self, x: [f64; 3]) -> [f64; 3] {
        let Self { centre, shift, .. } = self;
        let moved: [f64; 3] = std::array::from_fn(|i| x[i] - shift[i] - centre[i]);
        let back = match self.rotation {
            None => moved,
            Some(Rotation { matrix: r, .. }) => {
                std::array::from_fn(|i| (0..3).map(|j| r[j][i] * moved[j]).sum())
            }
        };
        std::array::from_fn(|i| back[i] + centre[i])
    }

    /// Returns the rotation, if it is one.
    pub fn rotation(&self) -> Option<Rotation> {
        self.rotation
    }
}

/// Returns the rotation about an axis through the origin by an angle in degrees.
fn rotation(axis: [f64; 3], degrees: f64) -> Rotation {
    let length = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
    let a = axis.map(|x| x / length);
    // Multiples of 90 degrees have no rounding.
    let turned = |degrees: f64| match degrees.rem_euclid(360.0) {
        0.0 => 0.0,
        90.0 => 1.0,
        180.0 => 0.0,
        270.0 => -1.0,
        other => other.to_radians().sin(),
    };
    let (s, c) = (turned(degrees), turned(degrees + 90.0));
    let cross = [[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]];
    let entry =
        |i: usize, j: usize| f64::from(u8::from(i == j)) * c + (1.0 - c) * a[i] * a[j] + s * cross[i][j];
    Rotation { matrix: std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j))), axis: a }
}

impl FormProblem<'_> {
    /// Ties the side `to` to the side `from`: u on `to` is that on `from`, where the meshes do not match its mortar projection, see
    /// [`Space::mortar`]. `tolerance` is as in [`Periodic`].
    ///
    /// # Errors
    /// [`SolveError::Setting`] for sides without facets. Distances are checked when the problem is solved.
    pub fn tie(
        &mut self,
        from: impl Into<Region>,
        to: impl Into<Region>,
        tolerance: Option<f64>,
    ) -> Result<(), SolveError> {
        let path = vec!["tie".into(), self.pairs.iter().filter(|pair| is_tie(pair)).count().into()];
        let [from, to] = self.sides(from.into(), to.into(), &path)?;
        let tolerance = checked(tolerance, &path)?;
        self.add_pair(Pair { from, to, motion: Motion::NONE, jump: Vec::new(), tolerance, path });
        Ok(())
    }

    /// Makes u on the side `to` that on the side `from` and a jump, where a motion takes `from` to `to`. Vectors with a component for
    /// each axis turn with a rotation.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for sides without facets, for another number of jumps than components, and for
    /// rotations out of the plane or of a body of revolution. Distances are checked when the problem is solved.
    pub fn periodic(
        &mut self,
        from: impl Into<Region>,
        to: impl Into<Region>,
        periodic: &Periodic,
    ) -> Result<(), SolveError> {
        let path: Vec<Key> =
            vec!["periodic".into(), self.pairs.iter().filter(|pair| !is_tie(pair)).count().into()];
        let [from, to] = self.sides(from.into(), to.into(), &path)?;
        let motion = self.motion(periodic.map, [&from, &to], &path)?;
        let tolerance = checked(periodic.tolerance, &path)?;
        let of_jump = below(&path, "jump");
        if !periodic.jump.is_empty() {
            check_count(periodic.jump.len(), self.n_components(), &of_jump)?;
        }
        let jump = periodic.jump.iter().enumerate();
        let jump = jump.map(|(i, value)| self.number(value, &self.of_component(&of_jump, i)));
        let jump = jump.collect::<Result<_, _>>()?;
        self.add_pair(Pair { from, to, motion, jump, tolerance, path });
        Ok(())
    }

    /// Makes u an unknown constant on a part of the boundary, such as a conductor without a given potential, for each component
    /// with a total: the flux into the body through all of it.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a part without facets, for another number of totals than components, and for one that is not finite.
    pub fn floating(&mut self, region: impl Into<Region>, totals: &[Option<f64>]) -> Result<(), SolveError> {
        let path = self.condition();
        // Both sides of an interface have the value, unless one of them is named.
        let facets = self.facets_of_flux(region, &below(&path, "where"))?;
        let given: Vec<f64> = totals.iter().map(|total| total.unwrap_or(0.0)).collect();
        self.check_totals(&given, &path)?;
        self.floating.push(Floating { facets, totals: totals.to_vec(), path });
        Ok(())
    }

    fn add_pair(&mut self, pair: Pair) {
        self.pairs.push(pair);
        self.tied = OnceLock::new();
    }

    fn sides(&self, from: Region, to: Region, path: &[Key]) -> Result<[Vec<u32>; 2], SolveError> {
        let from = self.facets(from, &below(path, "from"))?;
        let to = self.facets(to, &below(path, "to"))?;
        if let Some(facet) = to.iter().find(|facet| from.binary_search(facet).is_ok()) {
            let [x, y, z] = self.middle_of(*facet);
            let message = format!("a facet of `from` is one of `to` too, at ({x}, {y}, {z}): name two sides");
            return Err(SolveError::setting(&below(path, "to"), message));
        }
        Ok([from, to])
    }

    fn middle_of(&self, facet: u32) -> [f64; 3] {
        let nodes = self.facets.facet(facet as usize);
        let sum = |i: usize| nodes.iter().map(|&node| self.mesh.points[node as usize][i]).sum::<f64>();
        std::array::from_fn(|i| sum(i) / nodes.len() as f64)
    }

    fn motion(&self, map: SideMap, sides: [&[u32]; 2], path: &[Key]) -> Result<Motion, SolveError> {
        let d = self.mesh.space_dimension();
        let is_finite = |v: [f64; 3]| v.iter().all(|x| x.is_finite());
        match map {
            SideMap::Translation(shift) if is_finite(shift) => Ok(Motion { shift, ..Motion::NONE }),
            SideMap::Translation(_) => {
                Err(SolveError::setting(&below(path, "translation"), "it must be finite"))
            }
            SideMap::Rotation { axis, centre, degrees } => {
                let path = below(path, "rotation");
                if self.is_axisymmetric {
                    let message = "a body of revolution has no sectors: leave this or `axisymmetric` out";
                    return Err(SolveError::setting(&path, message));
                }
                if !(is_finite(axis) && is_finite(centre) && degrees.is_finite()) || axis == [0.0; 3] {
                    let message = "axis, centre and degrees must be finite, and the axis not zero";
                    return Err(SolveError::setting(&path, message));
                }
                if d == 2 && axis[..2] != [0.0; 2] {
                    let message = "a mesh in the plane turns about the axis (0, 0, 1): leave this out";
                    return Err(SolveError::setting(&below(&path, "axis"), message));
                }
                Ok(Motion { rotation: Some(rotation(axis, degrees)), centre, shift: [0.0; 3] })
            }
            SideMap::Found => {
                let middle = |facets: &[u32]| -> [f64; 3] {
                    let (mut lower, mut upper) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
                    for &node in facets.iter().flat_map(|&facet| self.facets.facet(facet as usize)) {
                        let x = self.mesh.points[node as usize];
                        lower = std::array::from_fn(|i| lower[i].min(x[i]));
                        upper = std::array::from_fn(|i| upper[i].max(x[i]));
                    }
                    std::array::from_fn(|i| 0.5 * (lower[i] + upper[i]))
                };
                let [from, to] = sides.map(middle);
                Ok(Motion { shift: std::array::from_fn(|i| to[i] - from[i]), ..Motion::NONE })
            }
        }
    }

    /// Returns whether unknowns of the problem follow others, beside those of components of degree 1.
    pub(super) fn has_relations(&self) -> bool {
        !self.pairs.is_empty() || !self.floating.is_empty()
    }

    /// Returns the key of the first condition that makes unknowns follow others.
    pub(super) fn first_relation(&self) -> Option<&[Key]> {
        let pairs = self.pairs.iter().map(|pair| &pair.path[..]);
        pairs.chain(self.floating.iter().map(|floating| &floating.path[..])).next()
    }

    /// Returns notes on the coefficients and warnings about the sides that follow others, once these are known.
    pub(super) fn warnings(&self) -> Vec<String> {
        let of_sides = self.tied.get().map_or(&[][..], |tied| &tied.warnings);
        [self.notes(), of_sides].concat()
    }

    /// Returns the degrees of freedom that follow others by pairs of sides.
    pub(super) fn tied(&self, space: &Space<'_>) -> Result<Arc<Tied>, SolveError> {
        if let Some(tied) = self.tied.get() {
            return Ok(Arc::clone(tied));
        }
        if self.pairs.is_empty() {
            return Ok(Arc::default());
        }
        let (facets, mut found) = (space.boundary_facets(&self.facets), Tied::default());
        for pair in 0..self.pairs.len() {
            self.tie_pair(space, &facets, pair, &mut found)?;
        }
        let found = Arc::new(found);
        Ok(Arc::clone(self.tied.get_or_init(|| found)))
    }

    fn tie_pair(
        &self,
        space: &Space<'_>,
        facets: &[CellFacet],
        number: usize,
        tied: &mut Tied,
    ) -> Result<(), SolveError> {
        let Pair { from, to, motion, tolerance, .. } = &self.pairs[number];
        let Tied { dofs: found, warnings } = tied;
        let first = found.len();
        let mut is_listed = vec![false; space.n_dofs()];
        let (mut at, mut sought) = (AtNodes::new(space), Vec::new());
        for &facet in to {
            let middle = self.middle_of(facet);
            let CellFacet { position, facet } = facets[facet as usize];
            at.move_to(position)?;
            for &local in &space.element().facets()[facet].dofs {
                let here = at.dof(local);
                if !std::mem::replace(&mut is_listed[here.dof as usize], true) {
                    let (cell, tag, point) = (here.cell, here.tag, here.point);
                    found.push(TiedDof {
                        dof: here.dof,
                        pair: number,
                        cell,
                        tag,
                        point,
                        terms: Vec::new(),
                        at_point: None,
                    });
                    let beside = std::array::from_fn(|i| point[i] + BESIDE * (middle[i] - point[i]));
                    sought.push([point, beside].map(|point| motion.origin(point)));
                }
            }
        }
        let side: Vec<CellFacet> = from.iter().map(|&facet| facets[facet as usize]).collect();
        let mut dofs = vec![0; space.element().n_dofs()];
        for (tied, foot) in found[first..].iter_mut().zip(space.nearest_beside(&side, &sought)) {
            let Some(foot) = foot else {
                let [x, y, z] = tied.point;
                let message = format!("no facet of `from` is near ({x}, {y}, {z}): name other sides");
                return Err(SolveError::setting(&self.pairs[number].path, message));
            };
            self.check_distance(number, ["to", "from"], (tied.point, &foot))?;
            space.cell_dofs(foot.at.position, &mut dofs);
            let shapes = space.element().tabulate(&[foot.at.reference]);
            let terms = dofs.iter().zip(shapes.values(0)).map(|(&dof, &shape)| (dof, shape));
            let is_one = |shape: f64| (shape - 1.0).abs() < SNAP;
            let near = shapes.values(0).iter().filter(|shape| shape.abs() > SNAP).count();
            tied.terms = match terms.clone().find(|(_, shape)| is_one(*shape)).filter(|_| near == 1) {
                Some((dof, _)) => vec![(dof, 1.0)],
                None => terms.filter(|(_, shape)| shape.abs() > SMALL).collect(),
            };
        }
        let follower: Vec<CellFacet> = to.iter().map(|&facet| facets[facet as usize]).collect();
        let origin = |point| motion.origin(point);
        let tags = &self.mesh.cell_tags;
        let density = |at: CellFacet, x: [f64; 3]| match &self.thickness {
            Some(thickness) => {
                let cell = space.cell(at.position);
                thickness.scalar_at(cell, tags.get(cell).copied().unwrap_or(0), x)
            }
            None => x[0],
        };
        let has_density = self.is_axisymmetric || self.thickness.is_some();
        let sides = SidePair {
            from: &side,
            to: &follower,
            motion: &origin,
            gap: *tolerance,
            density: has_density.then_some(&density),
        };
        let node = |tied: &TiedDof| SideNode { dof: tied.dof, point: tied.point, terms: tied.terms.clone() };
        let nodes: Vec<SideNode> = found[first..].iter().map(node).collect();
        let Mortar { relations, missed } = space.mortar(&sides, &nodes);
        warnings.extend(missed.first().map(|&facet| {
            let [x, y, z] = self.middle_of(to[facet]);
            let path = path_text(&self.pairs[number].path);
            format!(
                "{path}: `from` misses {} of {} facets of `to` in part, or covers them twice, as at ({x}, {y}, {z}): at their nodes u is \
                 interpolated, which has the order 2 at most and does not keep fluxes exactly",
                missed.len(),
                to.len()
            )
        }));
        for (tied, terms) in found[first..].iter_mut().zip(relations) {
            if let Some(terms) = terms {
                tied.at_point = Some(std::mem::replace(&mut tied.terms, terms));
            }
        }
        if is_tie(&self.pairs[number]) {
            return Ok(());
        }
        // Nothing of a periodic side may be left over.
        let nodes = from.iter().flat_map(|&facet| self.facets.facet(facet as usize)).copied();
        let mut nodes: Vec<u32> = nodes.collect();
        nodes.sort_unstable();
        nodes.dedup();
        let points: Vec<[f64; 3]> = nodes.iter().map(|&node| self.mesh.points[node as usize]).collect();
        let images: Vec<[f64; 3]> = points.iter().map(|&point| motion.image(point)).collect();
        for (point, foot) in points.into_iter().zip(space.nearest(&follower, &images)) {
            foot.map_or(Ok(()), |foot| self.check_distance(number, ["from", "to"], (point, &foot)))?;
        }
        Ok(())
    }

    /// Refuses a point of a side that is far from the other side.
    fn check_distance(
        &self,
        pair: usize,
        [own, other]: [&str; 2],
        (point, foot): ([f64; 3], &Foot),
    ) -> Result<(), SolveError> {
        let Pair { tolerance, path, .. } = &self.pairs[pair];
        let allowed = tolerance.unwrap_or(TOLERANCE * foot.size);
        if foot.distance <= allowed {
            return Ok(());
        }
        let [x, y, z] = point;
        let message = format!(
            "the sides do not map onto each other: the node of `{own}` at ({x}, {y}, {z}) is at a distance of {:e} from `{other}`, more \
             than the tolerance {allowed:e}; name other sides, the map or a larger `tolerance`",
            foot.distance
        );
        Err(SolveError::setting(path, message))
    }

    /// Returns for each component the first one of the vector that turns with the axes, if it belongs to one.
    pub(super) fn vectors(&self) -> Vec<Option<usize>> {
        let (d, mut all) = (self.mesh.space_dimension(), Vec::new());
        for (_, shape) in self.unknowns() {
            let first = all.len();
            let is_vector = shape == Shape::Vector(d);
            all.extend(vec![is_vector.then_some(first); shape.n_entries()]);
        }
        all
    }

    /// Returns the jump of a component at a degree of freedom of a pair.
    pub(super) fn jump_at(&self, tied: &TiedDof, component: usize) -> Result<f64, SolveError> {
        let pair = &self.pairs[tied.pair];
        let Some(jump) = pair.jump.get(component) else { return Ok(0.0) };
        let value = jump.scalar_at(tied.cell, tied.tag, tied.point);
        match value.is_finite() {
            true => Ok(value),
            false => {
                let [x, y, z] = tied.point;
                let message = format!("is {value} at ({x}, {y}, {z}); it must be finite");
                Err(SolveError::setting(&below(&pair.path, "jump"), message))
            }
        }
    }

    /// Takes the reaction of a component at a degree of freedom of a pair from those that it follows: $r_j \mathrel{-}= c_{ij} R^\mathsf{T} r_i$.
    pub(super) fn add_reaction(
        &self,
        tied: &TiedDof,
        component: usize,
        reaction: f64,
        of_others: &mut [f64],
    ) {
        let (n, d, vectors) = (self.n_components(), self.mesh.space_dimension(), self.vectors());
        for &(dof, c) in tied.terms(self.is_linear[component]) {
            let others = &mut of_others[dof as usize * n..][..n];
            match (vectors[component], self.motion_of(tied.pair).rotation()) {
                (Some(first), Some(Rotation { matrix, .. })) => {
                    let row = matrix[component - first];
                    (0..d).for_each(|axis| others[first + axis] -= c * row[axis] * reaction);
                }
                _ => others[component] -= c * reaction,
            }
        }
    }

    /// Returns the motion of a pair.
    pub(super) fn motion_of(&self, pair: usize) -> Motion {
        self.pairs[pair].motion
    }
}

fn is_tie(pair: &Pair) -> bool {
    pair.path.first() == Some(&"tie".into())
}

fn checked(tolerance: Option<f64>, path: &[Key]) -> Result<Option<f64>, SolveError> {
    match tolerance {
        Some(tolerance) if !(tolerance.is_finite() && tolerance > 0.0) => {
            Err(SolveError::setting(&below(path, "tolerance"), "a positive distance is needed"))
        }
        other => Ok(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_turn_by_the_right_hand_rule_and_back() {
        let turned = rotation([0.0, 0.0, 2.0], 90.0);
        assert_eq!(turned.matrix, [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]);
        let turned = rotation([1.0, 2.0, -0.5], 33.0);
        let motion = Motion { rotation: Some(turned), centre: [0.3, 0.1, -2.0], shift: [0.0; 3] };
        let x = [1.0, -2.0, 0.7];
        let back = motion.origin(motion.image(x));
        assert!((0..3).all(|i| (back[i] - x[i]).abs() < 1e-14), "{back:?}");
    }
}
