//! Sources at points, and totals of fluxes through parts of the boundary.

use std::f64::consts::TAU;

use femtile_expression::Shape;
use femtile_form::{BoundaryTerms, Equation, EquationText, Formulas, Unknown};
use femtile_operator::{DiscreteForm, State};
use femtile_space::Space;

use super::FormProblem;
use super::problem::axis_rounding;
use crate::coefficient::check_count;
use crate::{Key, Region, SolveError, below};

/// A source at a point of the mesh.
#[derive(Debug, Clone)]
pub(super) struct PointSource {
    pub point: [f64; 3],
    /// For each component what it gives.
    totals: Vec<f64>,
}

/// Unknowns with a part of their right side.
pub(super) type Loads = Vec<(u32, f64)>;

/// Takes the right side from a residual.
pub(super) fn subtract(loads: &[(u32, f64)], r: &mut [f64]) {
    loads.iter().for_each(|&(unknown, load)| r[unknown as usize] -= load);
}

impl FormProblem<'_> {
    /// Adds a source at a point, such as a well, with what it gives to the equation of each component: the same on every mesh and for
    /// every degree, $\sum_c s_c\,v_c(x)$ on the right side. Of a body of revolution it is that of the circle through the point. It is
    /// the same at all times and in all load steps.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a point outside the mesh, with the distance to the nearest cell, for another number of totals than
    /// components, and for one that is not finite.
    pub fn point_source(&mut self, point: [f64; 3], totals: &[f64]) -> Result<(), SolveError> {
        let path: [Key; 2] = ["source".into(), self.sources.len().into()];
        self.check_totals(totals, &path)?;
        if let Err((_, error)) = self.check_points(&[point]) {
            return Err(SolveError::setting(&below(&path, "point"), error.to_string()));
        }
        self.sources.push(PointSource { point, totals: totals.to_vec() });
        Ok(())
    }

    /// Adds a flux into the body, the same all over a part of the boundary or of tagged facets inside, with the total of each component;
    /// `total` divided by the area, of a sheet with its thickness, of a body of revolution that of its surface. Where a later condition
    /// takes facets of the part, their share is lost.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a part without facets or without area, for another number of totals than components, and for one
    /// that is not finite.
    pub fn total_on_boundary(&mut self, region: impl Into<Region>, totals: &[f64]) -> Result<(), SolveError> {
        let path = self.condition();
        self.check_totals(totals, &path)?;
        let on = self.select(region, &path)?;
        let area = self.area(&on.facets, self.is_axisymmetric)?;
        let of_axis = match self.is_axisymmetric {
            true => TAU * axis_rounding(self.mesh) * self.area(&on.facets, false)?,
            false => 0.0,
        };
        if area <= of_axis {
            let message = "is spread by area, and this part of the boundary has none: it is the axis";
            return Err(SolveError::setting(&below(&path, "total"), message));
        }
        let mut left = totals.iter().map(|total| format!("{:e}", total / area));
        let of_unknown = |(name, shape): (&str, Shape)| {
            let entries: Vec<String> = left.by_ref().take(shape.n_entries()).collect();
            let formula = entries.join(", ");
            (name.to_owned(), if shape == Shape::Number { formula } else { format!("[{formula}]") })
        };
        let formulas = Formulas::ByUnknown(self.unknowns().into_iter().map(of_unknown).collect());
        self.add_flux(on, formulas);
        Ok(())
    }

    pub(super) fn check_totals(&self, totals: &[f64], path: &[Key]) -> Result<(), SolveError> {
        let path = below(path, "total");
        check_count(totals.len(), self.n_components(), &path)?;
        match totals.iter().find(|total| !total.is_finite()) {
            Some(total) => Err(SolveError::setting(&path, format!("is {total}; it must be finite"))),
            None => Ok(()),
        }
    }

    /// Returns the area of some boundary facets, by the rule that integrates fluxes, of a sheet with its thickness; if asked for, that of
    /// the body of revolution.
    fn area(&self, facets: &[u32], is_axisymmetric: bool) -> Result<f64, SolveError> {
        let unit = BoundaryTerms { flux: "1".into(), ..BoundaryTerms::default() };
        let text = EquationText {
            unknown: [("u".to_owned(), Unknown::default())].into(),
            boundary: [("unit".to_owned(), unit)].into(),
            ..EquationText::default()
        };
        let equation = Equation::new("area", text)?;
        let form = self.begun(&equation).axisymmetric(is_axisymmetric);
        let form = form.on_boundary("unit", facets, &[])?.build()?;
        let space = Space::new(self.mesh, self.degree)?.axisymmetric(is_axisymmetric);
        let fluxes = DiscreteForm::new(&space, &form, &self.facets)?.prescribed_fluxes(&State::default())?;
        Ok(fluxes.iter().sum())
    }

    /// Returns the right side of the sources at points and of the totals of floating parts, each at one of their unknowns.
    pub(super) fn loads(&self, space: &Space<'_>) -> Loads {
        let (mut loads, n) = (self.point_loads(space), self.n_components() as u32);
        for (floating, dofs) in self.floating.iter().zip(self.floating_dofs(space)) {
            let Some(dof) = dofs.first() else { continue };
            let totals = (0..n).zip(&floating.totals);
            loads.extend(totals.filter_map(|(c, total)| Some((dof * n + c, (*total)?))));
        }
        loads
    }

    /// Returns the right side of the sources at points, $\sum_s s_c\,\varphi_i(x_s)$.
    pub(super) fn point_loads(&self, space: &Space<'_>) -> Loads {
        if self.sources.is_empty() {
            return Loads::new();
        }
        let n = self.n_components() as u32;
        let points: Vec<[f64; 3]> = self.sources.iter().map(|source| source.point).collect();
        let mut dofs = vec![0; space.element().n_dofs()];
        let mut loads = Loads::new();
        for (source, at) in self.sources.iter().zip(space.locate(&points)) {
            // Points outside the mesh were refused.
            let Some(at) = at else { continue };
            space.cell_dofs(at.position, &mut dofs);
            let shapes = space.element().tabulate(&[at.reference]);
            for (&dof, shape) in dofs.iter().zip(shapes.values(0)) {
                loads.extend((0..n).zip(&source.totals).map(|(c, total)| (dof * n + c, total * shape)));
            }
        }
        loads
    }
}
