//! Interfaces: facets between cells with two values of u, and the flux across them.

use std::sync::Arc;

use femtile_form::{Domain, Form, Formulas, Input, InteriorTerms};
use femtile_mesh::{CellSide, Mesh};

use super::FormProblem;
use crate::boundary::tags_called;
use crate::coefficient::cell_tags;
use crate::{Key, SolveError, below};

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
    pub fn facets(&self, mesh: &Mesh, path: &[Key]) -> Result<Vec<[CellSide; 2]>, SolveError> {
        match self {
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

/// Pairs of coinciding facets and the flux between them.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    /// Its name in the equation.
    pub name: String,
    /// Positions among all facets of the problem.
    pub pairs: Vec<[u32; 2]>,
    /// Whether u is that of one side by the settings.
    pub has_side: bool,
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
    /// flows, per area, $k\,(u_\text{other} - u)$. `conductances` has a formula of k for each unknown, by its name; formulas have the
    /// unknowns of the first sides, and those of the second ones with `_other`. `has_side` says that the first sides are those that the
    /// formulas mean; if not, they must not depend on the unknowns.
    ///
    /// # Errors
    /// The formulas are read when the problem is solved.
    pub fn interface(&mut self, pairs: &[[CellSide; 2]], conductances: &[(&str, &str)], has_side: bool) {
        let facets = Arc::make_mut(&mut self.facets);
        let positions = pairs.iter().map(|sides| {
            sides.map(|side| {
                facets.push(self.mesh, side);
                (facets.len() - 1) as u32
            })
        });
        let positions = positions.collect();
        let name = format!("{INTERFACE}{}", self.interfaces.len());
        let flux = |[from, to]: [&str; 2]| {
            let of = |(unknown, k): &(&str, &str)| {
                (String::from(*unknown), format!("({k})*({unknown}{to} - {unknown}{from})"))
            };
            Formulas::ByUnknown(conductances.iter().map(of).collect())
        };
        let [source, source_other] = [["", "_other"], ["_other", ""]].map(flux);
        let terms = InteriorTerms { source, source_other, ..InteriorTerms::default() };
        self.equation.set_interface_term(&name, terms);
        self.interfaces.push(Interface { name, pairs: positions, has_side });
    }

    /// Refuses conductances that depend on u where no side is named, and a thickness of its own on each side.
    pub(super) fn check_interfaces(&self, form: &Form) -> Result<(), SolveError> {
        if let Some(interface) = self.interfaces.first().filter(|_| self.has_thickness_of_cells()) {
            let message = "the thickness differs from cell to cell (`thickness` of [space] by tag or by a field), so that the interface has two: \
                           give a thickness that is a number or an expression";
            return Err(SolveError::setting(&interface_path(&interface.name), message));
        }
        let on_interfaces = form.integrals().iter().filter(|own| matches!(own.domain, Domain::Interface(_)));
        for (integral, Interface { name, has_side, .. }) in on_interfaces.zip(&self.interfaces) {
            let integrand = &integral.integrand;
            let mut inputs = integrand.inputs().iter().enumerate();
            let is_of_cell = inputs.any(|(at, input)| {
                matches!(input, Input::Normal(_) | Input::Tag | Input::Cell(_))
                    && integrand.residual().reads(at)
            });
            if (is_of_cell || !integrand.class().is_linear()) && !has_side {
                let message = "the two sides of the interface differ in it: give the tag of the cells whose values it takes, `from = \"…\"`, or \
                               `between`, whose first cells they are";
                return Err(SolveError::setting(&interface_path(name), message));
            }
        }
        Ok(())
    }
}
