//! Facets between cells with a tag: parts of conditions beside those of the boundary.

use std::sync::Arc;

use femtile_form::{Domain, Form, Input, ON_FACETS};
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

use super::FormProblem;
use crate::boundary::{Selected, of_side};
use crate::coefficient::cell_tags;
use crate::ranks::OnMesh;
use crate::{Key, Region, SolveError};

/// The facets of a condition.
pub(super) struct OnFacets {
    pub facets: Vec<u32>,
    /// Whether it has one side alone of each of those inside the mesh.
    pub has_side: bool,
}

/// Returns the facets of the boundary, followed by both sides of each tagged facet inside the mesh.
pub(super) fn with_inner_facets(mesh: &Mesh, boundary: &Arc<BoundaryFacets>) -> Arc<BoundaryFacets> {
    let inner = mesh.tagged_inner_facets(|_| true);
    if inner.is_empty() {
        return Arc::clone(boundary);
    }
    let mut facets = BoundaryFacets::clone(boundary);
    inner.into_iter().flatten().for_each(|side| facets.push(mesh, side));
    Arc::new(facets)
}

impl FormProblem<'_> {
    /// Returns the facets of the boundary, followed by both sides of each tagged facet inside the mesh, the lower cell first, and by
    /// those of interfaces.
    pub fn all_facets(&self) -> &BoundaryFacets {
        &self.facets
    }

    /// Returns the facets of a region among [`Self::all_facets`], each once: of a facet inside the mesh the side of the region, else the
    /// first one. `path` is the setting that names it.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if it has none; for a side, if no cell has its tag and if a facet has it on both sides.
    pub fn facets(&self, region: impl Into<Region>, path: &[Key]) -> Result<Vec<u32>, SolveError> {
        Ok(self.on_facets(region.into(), path)?.facets)
    }

    /// As [`Self::facets`], with whether the region has one side alone of each facet inside the mesh.
    pub(super) fn on_facets(&self, region: Region, path: &[Key]) -> Result<OnFacets, SolveError> {
        match region {
            Region::Side { of, cells } => {
                let facets = self.at_cells(self.both_sides(*of, path)?, &cells, &of_side(path))?;
                Ok(OnFacets { facets, has_side: true })
            }
            of => {
                let all = self.both_sides(of, path)?;
                let twin = |facet: u32| self.twin(facet).filter(|twin| all.binary_search(twin).is_ok());
                // The sides of parts that touch have tags of their own.
                let has_side = all.iter().all(|&facet| twin(facet).is_none());
                let is_first = |facet: &u32| twin(*facet).is_none_or(|twin| *facet < twin);
                Ok(OnFacets { facets: all.iter().copied().filter(is_first).collect(), has_side })
            }
        }
    }

    /// As [`Self::facets`], with both sides of facets inside the mesh where the region has no side: through them together flows into the
    /// body what conditions give there.
    ///
    /// # Errors
    /// As [`Self::facets`].
    pub fn facets_of_flux(&self, region: impl Into<Region>, path: &[Key]) -> Result<Vec<u32>, SolveError> {
        match region.into() {
            side @ Region::Side { .. } => self.facets(side, path),
            of => self.both_sides(of, path),
        }
    }

    fn both_sides(&self, region: Region, path: &[Key]) -> Result<Vec<u32>, SolveError> {
        if !region.is_tag(self.mesh) {
            return Ok(region.facets(OnMesh::whole(self.mesh), self.boundary(), path)?.facets);
        }
        let Selected { facets, n_inside } = region.facets(OnMesh::whole(self.mesh), &self.facets, path)?;
        if n_inside == 0 {
            return Ok(facets);
        }
        let message = format!(
            "{n_inside} facets of the tag have more than two cells or none, so that they are no sides of cells: give them another tag"
        );
        Err(SolveError::setting(path, message))
    }

    /// Keeps the facets at cells with a tag.
    fn at_cells(&self, mut facets: Vec<u32>, cells: &str, path: &[Key]) -> Result<Vec<u32>, SolveError> {
        let tags = cell_tags(self.mesh, cells, path)?;
        let cell = |facet: u32| self.facets.cells[facet as usize];
        let is_at = |facet: u32| tags.contains(&self.tag_of(cell(facet)));
        facets.retain(|&facet| is_at(facet));
        if facets.is_empty() {
            let message = format!("no cell with the tag `{cells}` has one of the facets");
            return Err(SolveError::setting(path, message));
        }
        // The other side counts if it is one of the facets: those of parts that touch have tags of their own.
        let has_twin = |facet: u32| self.twin(facet).is_some_and(|twin| facets.binary_search(&twin).is_ok());
        match facets.iter().find(|&&facet| has_twin(facet)) {
            None => Ok(facets),
            Some(&facet) => {
                let n = self.facets.facet(facet as usize).len() as f64;
                let nodes =
                    self.facets.facet(facet as usize).iter().map(|&node| self.mesh.points[node as usize]);
                let [x, y, z] =
                    nodes.fold([0.0; 3], |sum, point| std::array::from_fn(|i| sum[i] + point[i] / n));
                Err(SolveError::setting(
                    path,
                    format!(
                        "both cells of the facet at ({x}, {y}, {z}) have the tag `{cells}`, so that it is no side of them: name cells on one side alone"
                    ),
                ))
            }
        }
    }

    pub(super) fn tag_of(&self, cell: u32) -> i32 {
        self.mesh.cell_tags.get(cell as usize).copied().unwrap_or(0)
    }

    /// Returns the other side of a facet inside the mesh.
    pub(super) fn twin(&self, facet: u32) -> Option<u32> {
        let inner = (facet as usize).checked_sub(self.n_outer)?;
        Some((self.n_outer + (inner ^ 1)) as u32)
    }

    /// Returns the other side of a facet inside the mesh with the same values of u.
    pub(super) fn joined_twin(&self, facet: u32) -> Option<u32> {
        self.twin(facet).filter(|_| (facet as usize) < self.n_joined)
    }

    /// Returns the facets of each term, without those that a later one takes.
    pub(super) fn facets_of_terms(&self) -> Vec<Vec<u32>> {
        let mut is_taken = vec![false; self.facets.len()];
        let of_term = |facets: &Vec<u32>| {
            let own: Vec<u32> = facets.iter().copied().filter(|&facet| !is_taken[facet as usize]).collect();
            let both = own.iter().flat_map(|&facet| [Some(facet), self.joined_twin(facet)]).flatten();
            both.for_each(|facet| is_taken[facet as usize] = true);
            own
        };
        let mut facets: Vec<Vec<u32>> =
            self.terms.iter().rev().map(|term| &term.facets).map(of_term).collect();
        facets.reverse();
        facets
    }

    /// Refuses integrals over facets inside the mesh that depend on the side, where a condition names none.
    pub(super) fn check_sides(&self, form: &Form) -> Result<(), SolveError> {
        let n = self.n_components();
        let on_facets =
            form.integrals().iter().filter(|integral| matches!(integral.domain, Domain::Boundary(_)));
        for (integral, term) in on_facets.zip(self.terms.iter().rev()) {
            let Domain::Boundary(facets) = &integral.domain else { continue };
            if term.has_side || !facets.iter().any(|&facet| self.twin(facet).is_some()) {
                continue;
            }
            let path = [Key::from("boundary"), term.condition.into(), "where".into()];
            if facets.iter().any(|&facet| facet as usize >= self.n_joined) {
                let message = "the facets are those of an [[interface]], whose sides have a value each: give the tag of the cells on one of \
                               them, `from = \"…\"`";
                return Err(SolveError::setting(&path, message));
            }
            let integrand = &integral.integrand;
            let is_value =
                |slot: usize| (0..n).any(|c| integrand.slot(femtile_form::Side::First, c, None) == slot);
            let has_sides = |input: &Input| match *input {
                Input::Normal(_) | Input::Tag | Input::Cell(_) => true,
                Input::State(slot) => !is_value(slot),
                _ => false,
            };
            let inputs = integrand.inputs().iter().enumerate();
            if inputs.into_iter().any(|(at, input)| has_sides(input) && integrand.residual().reads(at)) {
                let thickness = match self.has_thickness_of_cells() {
                    true => ", as the thickness does",
                    false => "",
                };
                let what = if term.name == ON_FACETS { "formula" } else { "condition" };
                let message = format!(
                    "the tag is on facets inside the mesh, and the {what} depends on the normal, on the gradient or on the \
                     cell{thickness}, which differ on the two sides: give the tag of the cells on one side, `from = \"…\"`"
                );
                return Err(SolveError::setting(&path, message));
            }
        }
        Ok(())
    }
}
