//! Rule-based fibres: directions of muscle fibres and sheets from the shape of ventricles.
//!
//! `coordinates`: solutions of Laplace problems that stand for depth and height; `frame`: axes and angles in
//! a cell; `repair`: cells without axes.

mod coordinates;
mod frame;
mod repair;

use femtile::mesh::Field;
use femtile::{Mesh, Region, SolverConfig};

use crate::CardiacError;
use coordinates::Coordinates;
use frame::{Angles, directions};

/// The rule that gives each cell of one or two ventricles the directions of its fibres and sheets.
///
/// With the depth $e$, 0 at the endocardium and 1 at the epicardium, and the height $\psi$, fibres turn against the
/// circumference by an angle that is linear in $e$,
///
/// $$ f = \cos\alpha\, c + \sin\alpha\, l, \quad \alpha = (1 - e)\,\alpha_{endo} + e\,\alpha_{epi}, \qquad
///    t = \frac{\nabla e}{|\nabla e|}, \quad l = \frac{(I - t t^T)\nabla\psi}{|(I - t t^T)\nabla\psi|}, \quad c = l \times t, $$
///
/// and sheets $s = \cos\beta\, t + \sin\beta\,(\cos\alpha\, l - \sin\alpha\, c)$ likewise. Angles are positive where fibres rise
/// towards the base while they run anticlockwise, seen from the base.
///
/// ```
/// use femtile::mesh::generate::{VentricleConfig, ventricle};
/// use femtile::{SolverConfig, Value};
/// use femtile_cardiac::RuleBasedFibres;
///
/// let mut mesh = ventricle(&VentricleConfig { h_mm: 3.0 })?;
/// let rule = RuleBasedFibres::new("endocardium", "epicardium", "base").helix_angles(60.0, -60.0);
/// let fibres = rule.compute(&mesh, &SolverConfig::default())?;
/// fibres.insert_into(&mut mesh);
/// let conductivity = Value::fibres("fibre", 0.133, 0.0176);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// `[bayer2012]`. Differs: one depth and frame through a wall, so that angles are linear in it; the apex is
/// the maximum of the solution of $-\Delta d = 1$ with $d = 0$ at the base; frames of two ventricles are
/// joined by sums of vectors with matching signs.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct RuleBasedFibres {
    endocardium: Region,
    right_endocardium: Option<Region>,
    epicardium: Region,
    base: Region,
    apex: Option<Region>,
    helix: [f64; 2],
    sheet: [f64; 2],
}

impl RuleBasedFibres {
    /// Returns the rule for a ventricle whose surfaces are parts of the boundary, with helix angles from +60° to −60° and
    /// angles of sheets from −65° to 25°.
    pub fn new(
        endocardium: impl Into<Region>,
        epicardium: impl Into<Region>,
        base: impl Into<Region>,
    ) -> Self {
        Self {
            endocardium: endocardium.into(),
            right_endocardium: None,
            epicardium: epicardium.into(),
            base: base.into(),
            apex: None,
            helix: [60.0, -60.0],
            sheet: [-65.0, 25.0],
        }
    }

    /// Sets the endocardium of the right ventricle; that of [`RuleBasedFibres::new`] is the left one.
    pub fn right_endocardium(mut self, part: impl Into<Region>) -> Self {
        self.right_endocardium = Some(part.into());
        self
    }

    /// Sets the part of the boundary that is the apex; without it the apex is found.
    pub fn apex(mut self, part: impl Into<Region>) -> Self {
        self.apex = Some(part.into());
        self
    }

    /// Sets the angles of fibres to the circumference at endocardium and epicardium, in degrees.
    pub fn helix_angles(mut self, endocardium: f64, epicardium: f64) -> Self {
        self.helix = [endocardium, epicardium];
        self
    }

    /// Sets the angles of sheets to the direction through the wall at endocardium and epicardium, in degrees.
    pub fn sheet_angles(mut self, endocardium: f64, epicardium: f64) -> Self {
        self.sheet = [endocardium, epicardium];
        self
    }

    /// Computes the directions in all cells of a mesh in space.
    ///
    /// # Cost
    /// Three Laplace problems with linear elements; one more with a right ventricle, one less with an apex.
    /// # Errors
    /// [`CardiacError::Setting`] for a plane mesh, angles that are not finite, parts that the boundary does
    /// not have, and parts between which depth or height does not change; [`CardiacError::Solve`] if a
    /// problem cannot be solved.
    pub fn compute(&self, mesh: &Mesh, config: &SolverConfig) -> Result<Fibres, CardiacError> {
        self.check(mesh)?;
        let coordinates = Coordinates::new(self, mesh, config)?;
        let angles =
            Angles { helix: self.helix.map(f64::to_radians), sheet: self.sheet.map(f64::to_radians) };
        let smallest = coordinates.smallest()?;
        let found = (0..mesh.n_cells()).map(|cell| directions(&coordinates.at(cell), &angles, smallest));
        let mut found: Vec<Option<[[f64; 3]; 2]>> = found.collect();
        let n_without = found.iter().filter(|directions| directions.is_none()).count();
        let mut warnings = coordinates.warnings;
        if n_without > 0 {
            repair::from_neighbours(mesh, &mut found);
            warnings.push(format!("{n_without} cells where depth or height has no gradient have the directions of their neighbours"));
        }
        let part = |i: usize| found.iter().flatten().flat_map(move |directions| directions[i]).collect();
        Ok(Fibres {
            fibre: part(0),
            sheet: part(1),
            transmural: coordinates.depth.mean,
            apicobasal: coordinates.height.mean,
            warnings,
        })
    }

    fn check(&self, mesh: &Mesh) -> Result<(), CardiacError> {
        if mesh.dimension() != 3 {
            let message = "fibres turn through the wall of a ventricle: a mesh in space is needed";
            return Err(CardiacError::setting("mesh", message));
        }
        for (field, angles) in [("helix_angles", self.helix), ("sheet_angles", self.sheet)] {
            if let Some(angle) = angles.iter().find(|angle| !angle.is_finite()) {
                return Err(CardiacError::setting(field, format!("{angle}; degrees are needed")));
            }
        }
        Ok(())
    }
}

/// Directions of fibres and sheets in each cell, and the coordinates that they come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Fibres {
    /// Unit vectors along fibres: `[n_cells × 3]`.
    pub fibre: Vec<f64>,
    /// Unit vectors within sheets, across fibres: `[n_cells × 3]`.
    pub sheet: Vec<f64>,
    /// The depth in the wall: 0 at the endocardia, 1 at the epicardium.
    pub transmural: Vec<f64>,
    /// The height: 0 at the apex, 1 at the base.
    pub apicobasal: Vec<f64>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl Fibres {
    /// Sets the cell fields `fibre`, `sheet`, `transmural` and `apicobasal` of the mesh.
    pub fn insert_into(self, mesh: &mut Mesh) {
        for (name, n_components, values) in [
            ("fibre", 3, self.fibre),
            ("sheet", 3, self.sheet),
            ("transmural", 1, self.transmural),
            ("apicobasal", 1, self.apicobasal),
        ] {
            mesh.cell_fields.insert(name.into(), Field { n_components, values });
        }
    }
}
