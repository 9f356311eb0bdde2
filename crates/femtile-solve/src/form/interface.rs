//! Interfaces: facets between cells with two values of u, and the flux across them.

use std::sync::Arc;

use femtile_form::{Domain, Form, Formulas, Input, InteriorTerms};
use femtile_mesh::check::BoundaryFacets;
use femtile_mesh::{CellSide, Mesh};
use femtile_space::{Bounds, BoxTree};

use super::FormProblem;
use crate::boundary::tags_called;
use crate::coefficient::cell_tags;
use crate::ranks::OnMesh;
use crate::{Key, Region, SolveError, below};

/// The facets between cells of an interface.
#[derive(Debug, Clone, Copy)]
pub enum InterfacePlace<'a> {
    /// Those with a tag, with the tag of the cells on the side of u.
    Tagged {
        /// The tag of the facets.
        tag: &'a str,
        /// That of the cells.
        from: Option<&'a str>,
    },
    /// Those between cells with two tags; u is that of the first ones.
    Between([&'a str; 2]),
    /// Two sides of parts that touch without common nodes, each facet of one at the place of one of the other; u is that of the first.
    Sides([&'a str; 2]),
}

impl InterfacePlace<'_> {
    /// Returns whether it says which side u is of.
    pub fn has_side(&self) -> bool {
        !matches!(self, Self::Tagged { from: None, .. })
    }

    /// Returns both sides of each facet, that of u first; `path` is the setting of the interface.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for tags that there are not, without facets, for facets with another number of cells than two, and for
    /// one of whose cells not exactly one is of the side of u.
    pub fn facets(
        &self,
        mesh: &Mesh,
        boundary: &BoundaryFacets,
        path: &[Key],
    ) -> Result<Vec<[CellSide; 2]>, SolveError> {
        match self {
            Self::Sides(names) => {
                let path = below(path, "sides");
                let side = |i: usize| {
                    let path = below(&path, i);
                    let found = Region::from(names[i]).facets(OnMesh::whole(mesh), boundary, &path)?;
                    match found.n_inside {
                        0 => Ok(Side::new(mesh, boundary, &found.facets)),
                        n => {
                            let message = format!(
                                "the tag is on {n} facets inside the mesh too: give those at the other part another tag, or take `where`"
                            );
                            Err(SolveError::setting(&path, message))
                        }
                    }
                };
                coinciding([side(0)?, side(1)?], names).map_err(|message| SolveError::setting(&path, message))
            }
            Self::Between(cells) => {
                let path = below(path, "between");
                let [first, second] = [0, 1].map(|i| cell_tags(mesh, cells[i], &below(&path, i)));
                let (first, second) = (first?, second?);
                if first.iter().any(|tag| second.contains(tag)) {
                    return Err(SolveError::setting(&path, "both names are of the same cells"));
                }
                let found = mesh
                    .facets_between([&first, &second])
                    .map_err(|error| SolveError::setting(&path, error.to_string()))?;
                match found.is_empty() {
                    true => {
                        Err(SolveError::setting(&path, "no cell of one has a facet with a cell of the other"))
                    }
                    false => Ok(found),
                }
            }
            Self::Tagged { tag, from } => {
                let tags = tags_called(mesh, tag);
                let mut found = mesh.tagged_inner_facets(|tag| tags.contains(&tag));
                let place = below(path, "where");
                if found.is_empty() {
                    let message = match tags.is_empty() {
                        true => format!(
                            "there is no tag `{tag}` of facets: name one that lies inside the mesh, or take `between`"
                        ),
                        false => format!("the tag `{tag}` is on no facet between cells"),
                    };
                    return Err(SolveError::setting(&place, message));
                }
                let n_outer = mesh.n_tagged(|tag| tags.contains(&tag)) - found.len();
                if n_outer > 0 {
                    let message = format!(
                        "the tag `{tag}` is on {n_outer} facets with one cell or more than two, which have no two sides: give them another tag"
                    );
                    return Err(SolveError::setting(&place, message));
                }
                let Some(from) = from else { return Ok(found) };
                let path = below(path, "from");
                let cells = cell_tags(mesh, from, &path)?;
                for pair in &mut found {
                    let is_of = pair.map(|side| {
                        cells.contains(&mesh.cell_tags.get(side.cell as usize).copied().unwrap_or(0))
                    });
                    if is_of[0] == is_of[1] {
                        let [x, y, z] = mesh.middle_of_side(pair[0]);
                        let n = if is_of[0] { "both cells" } else { "no cell" };
                        let message = format!(
                            "{n} of the facet at ({x}, {y}, {z}) have this tag: name cells on one side of all facets"
                        );
                        return Err(SolveError::setting(&path, message));
                    }
                    if is_of[1] {
                        pair.reverse();
                    }
                }
                Ok(found)
            }
        }
    }
}

/// Distance beyond which corners of facets are not the same, relative to the distance of the corners from the middle.
const TOLERANCE: f64 = 1e-3;

/// Facets of the boundary.
struct Side {
    facets: Vec<SideFacet>,
    /// Of their middles.
    tree: BoxTree,
}

struct SideFacet {
    side: CellSide,
    corners: Vec<[f64; 3]>,
    middle: [f64; 3],
}

impl Side {
    fn new(mesh: &Mesh, boundary: &BoundaryFacets, facets: &[u32]) -> Self {
        let of = |&facet: &u32| {
            let (cell, local) = (boundary.cells[facet as usize], boundary.local[facet as usize]);
            let side = CellSide { cell, local };
            let corners = mesh.side(side).map(|node| mesh.points[node as usize]).collect();
            SideFacet { side, corners, middle: mesh.middle_of_side(side) }
        };
        let facets: Vec<SideFacet> = facets.iter().map(of).collect();
        let boxes: Vec<Bounds> = facets.iter().map(|own| Bounds::EMPTY.with(own.middle)).collect();
        Self { facets, tree: BoxTree::new(&boxes) }
    }

    /// Returns the position of the facet at the place of another.
    fn at(&self, other: &SideFacet) -> Option<usize> {
        let radius = other.corners.iter().map(|&corner| distance(corner, other.middle)).fold(0.0, f64::max);
        let tolerance = TOLERANCE * radius;
        let near = self.tree.meeting(Bounds::EMPTY.with(other.middle).widened([tolerance; 3]));
        let has =
            |corners: &[[f64; 3]], corner| corners.iter().any(|&own| distance(own, corner) <= tolerance);
        let is_there = |own: &SideFacet| other.corners.iter().all(|&corner| has(&own.corners, corner));
        near.into_iter().map(|own| own as usize).find(|&own| is_there(&self.facets[own]))
    }
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|i| (a[i] - b[i]) * (a[i] - b[i])).sum::<f64>().sqrt()
}

/// Returns the pairs of facets of two sides at the same place; a message if a facet has none.
///
/// # Cost
/// A search in a tree of boxes for each facet.
fn coinciding(sides: [Side; 2], names: &[&str; 2]) -> Result<Vec<[CellSide; 2]>, String> {
    let alone = |facet: &SideFacet, which: usize| {
        let others = &sides[1 - which];
        let of = |other: u32| distance(others.facets[other as usize].middle, facet.middle);
        let nearest = others.tree.nearest(facet.middle, of).map_or(f64::INFINITY, |(_, nearest)| nearest);
        let [x, y, z] = facet.middle;
        format!(
            "the facet of `{}` at ({x}, {y}, {z}) has none of `{}` at its place, the middle of the nearest is {nearest:.3e} away: both sides \
             need the same facets",
            names[which],
            names[1 - which]
        )
    };
    let mut is_taken = vec![false; sides[1].facets.len()];
    let mut pairs = Vec::with_capacity(sides[0].facets.len());
    for facet in &sides[0].facets {
        let Some(other) = sides[1].at(facet) else { return Err(alone(facet, 0)) };
        if sides[1].facets[other].side == facet.side {
            return Err("both names are of the same facets".to_owned());
        }
        is_taken[other] = true;
        pairs.push([facet.side, sides[1].facets[other].side]);
    }
    match is_taken.iter().position(|is_taken| !is_taken) {
        Some(left) => Err(alone(&sides[1].facets[left], 1)),
        None => Ok(pairs),
    }
}

/// Pairs of coinciding facets and the flux between them.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    /// Its name in the equation.
    pub name: String,
    /// Positions among all facets of the problem.
    pub pairs: Vec<[u32; 2]>,
    /// Whether u is that of one side by the settings.
    pub has_side: bool,
    /// Whether no formula names the normal, so that both directions of it give the same.
    pub is_even: bool,
}

/// The flux of an unknown across an interface per area, from the second side into the first one.
#[derive(Debug, Clone)]
pub enum InterfaceFlux {
    /// $k\,(u_\text{other} - u)$, with a formula of k.
    Conductance(String),
    /// Of a vector $k_n\,(d\cdot n)\,n + k_t\,(d - (d\cdot n)\,n)$ for $d = u_\text{other} - u$, with formulas of both factors.
    Stiffness {
        /// Along the normal.
        normal: String,
        /// Across it.
        tangential: String,
    },
    /// A formula.
    Formula(String),
}

impl InterfaceFlux {
    /// Returns the formulas of what enters the first side and the second one.
    fn of_sides(&self, unknown: &str) -> [String; 2] {
        let jumps = [format!("({unknown}_other - {unknown})"), format!("({unknown} - {unknown}_other)")];
        match self {
            Self::Conductance(k) => jumps.map(|jump| format!("({k})*{jump}")),
            Self::Stiffness { normal, tangential } => jumps.map(|jump| {
                let along = format!("({jump}.normal)*normal");
                format!("({normal})*{along} + ({tangential})*({jump} - {along})")
            }),
            Self::Formula(flux) => [flux.clone(), format!("-({flux})")],
        }
    }
}

impl InterfaceFlux {
    /// Returns whether a formula names the normal, which differs on the two sides.
    fn reads_normal(&self) -> bool {
        let formulas = match self {
            Self::Conductance(one) | Self::Formula(one) => [one, one],
            Self::Stiffness { normal, tangential } => [normal, tangential],
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        formulas.iter().any(|formula| formula.split(|c| !is_word(c)).any(|word| word == "normal"))
    }
}

/// Begins the names of terms on interfaces.
const INTERFACE: &str = "interface-";

/// Returns the setting of an interface from its term.
pub(super) fn interface_path(term: &str) -> Vec<Key> {
    let number: usize =
        term.strip_prefix(INTERFACE).and_then(|number| number.parse().ok()).unwrap_or_default();
    vec!["interface".into(), number.into()]
}

impl FormProblem<'_> {
    /// Adds an interface, two sides of a cut of the mesh ([`femtile_mesh::Mesh::split`]) with a value of u each: from one to the other
    /// flows the flux of each unknown, by its name. Formulas have the unknowns of the first sides, those of the second ones with `_other`,
    /// and the `normal` out of the first ones. `has_side` says that the first sides are those that the formulas mean; if not, both
    /// sides must be alike in them.
    ///
    /// # Errors
    /// The formulas are read when the problem is solved.
    pub fn interface(&mut self, pairs: &[[CellSide; 2]], fluxes: &[(&str, InterfaceFlux)], has_side: bool) {
        let facets = Arc::make_mut(&mut self.facets);
        let positions = pairs.iter().map(|sides| {
            sides.map(|side| {
                facets.push(self.mesh, side);
                (facets.len() - 1) as u32
            })
        });
        let positions = positions.collect();
        let name = format!("{INTERFACE}{}", self.interfaces.len());
        let of_side = |side: usize| {
            let of = |(unknown, flux): &(&str, InterfaceFlux)| {
                (String::from(*unknown), flux.of_sides(unknown)[side].clone())
            };
            Formulas::ByUnknown(fluxes.iter().map(of).collect())
        };
        let [source, source_other] = [0, 1].map(of_side);
        let is_even = fluxes.iter().all(|(_, flux)| !flux.reads_normal());
        let terms = InteriorTerms { source, source_other, ..InteriorTerms::default() };
        self.equation.set_interface_term(&name, terms);
        self.interfaces.push(Interface { name, pairs: positions, has_side, is_even });
    }

    /// Refuses conductances that depend on u where no side is named, and a thickness of its own on each side.
    pub(super) fn check_interfaces(&self, form: &Form) -> Result<(), SolveError> {
        if let Some(interface) = self.interfaces.first().filter(|_| self.has_thickness_of_cells()) {
            let message = "the thickness differs from cell to cell (`thickness` of [space] by tag or by a field), so that the interface has two: \
                           give a thickness that is a number or an expression";
            return Err(SolveError::setting(&interface_path(&interface.name), message));
        }
        let on_interfaces = form.integrals().iter().filter(|own| matches!(own.domain, Domain::Interface(_)));
        for (integral, Interface { name, has_side, is_even, .. }) in on_interfaces.zip(&self.interfaces) {
            let integrand = &integral.integrand;
            let mut inputs = integrand.inputs().iter().enumerate();
            let is_of_cell = inputs.any(|(at, input)| {
                matches!(input, Input::Tag | Input::Cell(_)) && integrand.residual().reads(at)
                    || matches!(input, Input::Normal(_)) && !is_even && integrand.residual().reads(at)
            });
            if (is_of_cell || !integrand.class().is_linear()) && !has_side {
                let message = "the two sides of the interface differ in it: give the tag of the cells whose values it takes, `from = \"…\"`, or \
                               `between` or `sides`, whose first cells they are";
                return Err(SolveError::setting(&interface_path(name), message));
            }
        }
        Ok(())
    }
}
