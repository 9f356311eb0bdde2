//! The part of the program that solves the equation of a case.

use femtile_expression::{Expression, Names, Variable};
use femtile_mesh::{CellKind, Mesh};
use femtile_solve::{Region, path_text};

use crate::Case;
use crate::distribution::RankMesh;
use crate::file::{
    BoundarySection, Entry, EquationKind, Functional, Generator, InterfaceSection, OfUnknowns, RobinSection,
    TimeMethod, Value,
};
use crate::form::interface;

/// Parts of the program that solve an equation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// Reaction and diffusion, by operators of their own.
    Stationary,
    /// Diffusion in time on a mesh, by operators of its own.
    Transient,
    /// Diffusion in time on a grid, by alternating directions.
    Grid,
    /// The monodomain equation.
    Heart,
    /// A form.
    Form,
}

/// The properties of a mesh that decide which part of the program solves on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeshTraits {
    kind: CellKind,
    is_surface: bool,
    /// Whether a condition or a flux is on facets inside the mesh.
    has_inner_facets: bool,
}

impl Case {
    /// Returns the part of the program that solves the equation; it may change once a mesh file was read, see [`Case::on_mesh`].
    pub(crate) fn route(&self) -> Route {
        match self.file.equation.kind {
            EquationKind::Elasticity | EquationKind::ConvectionDiffusion | EquationKind::Form => Route::Form,
            EquationKind::Monodomain => Route::Heart,
            EquationKind::Diffusion if !self.is_transient_on_mesh() => Route::Grid,
            EquationKind::ReactionDiffusion | EquationKind::Diffusion if self.needs_form().is_some() => {
                Route::Form
            }
            EquationKind::ReactionDiffusion => Route::Stationary,
            EquationKind::Diffusion => Route::Transient,
        }
    }

    /// Returns the key of reaction and diffusion, steady or in time, because of which the equation is solved as a form, whose operators
    /// know more conditions and elements; none for other kinds of equation.
    pub(crate) fn needs_form(&self) -> Option<String> {
        let file = &self.file;
        if !matches!(file.equation.kind, EquationKind::ReactionDiffusion | EquationKind::Diffusion) {
            return None;
        }
        let is_inside = self.mesh_traits.is_some_and(|traits| traits.has_inner_facets);
        let has_formula = file.output.functionals.iter().any(|functional| functional.key_of_form().is_some());
        let keys = [
            ("[modes]", file.modes.is_some()),
            ("`axisymmetric`", file.space.axisymmetric),
            ("`thickness`", file.space.thickness.is_some()),
            ("[[source]]", !file.source.is_empty()),
            ("[[interface]]", !file.interface.is_empty()),
            ("`constants`", !file.equation.constants.is_empty()),
            ("a surface in space", self.is_on_surface()),
            ("a tag of facets inside the mesh", is_inside),
            ("`formula` or `where` of a functional", has_formula),
            ("`from` of a functional", self.fluxes().any(|(_, from)| from.is_some())),
        ];
        if let Some((key, _)) = keys.into_iter().find(|(_, given)| *given) {
            return Some(key.to_owned());
        }
        if let Some(path) = file.key_of_sides() {
            return Some(format!("`{}`", path_text(&path)));
        }
        let mut conditions = file.boundary.iter().enumerate();
        let condition = |(i, section): (usize, &BoundarySection)| {
            Some(format!("`boundary[{i}].{}`", section.key_of_form()?))
        };
        if let Some(key) = conditions.find_map(condition) {
            return Some(key);
        }
        let degree = file.space.degree;
        let kind = self.cell_kind().filter(|kind| degree > 1 && is_simplex(*kind))?;
        Some(format!("`degree` {degree} on {kind} cells"))
    }

    /// Returns the kind of the cells, as far as it is known.
    fn cell_kind(&self) -> Option<CellKind> {
        let of_program = || self.embedding.mesh.as_ref().map(|mesh| mesh.kind);
        self.mesh_traits
            .map(|traits| traits.kind)
            .or_else(|| self.file.mesh.generate.as_ref().and_then(Generator::cell_kind))
            .or_else(of_program)
    }

    /// Returns whether the mesh is a surface in space, as far as it is known.
    fn is_on_surface(&self) -> bool {
        let of_generator = || matches!(self.file.mesh.generate, Some(Generator::Sphere { .. }));
        let of_program = || self.embedding.mesh.as_ref().map(|mesh| mesh.is_surface);
        self.mesh_traits.map(|traits| traits.is_surface).or_else(of_program).unwrap_or_else(of_generator)
    }

    /// Returns the case with the properties of its mesh, if it is now solved as a form; all ranks agree.
    pub(crate) fn on_mesh(&self, held: &RankMesh) -> Option<Self> {
        let known = match held {
            RankMesh::Part(part) => self.with_traits(MeshTraits {
                kind: part.checked.kind,
                is_surface: part.mesh.part.mesh.is_surface,
                has_inner_facets: part.has_inner_facets,
            }),
            RankMesh::Whole(mesh, _) => self.on_whole(mesh),
        };
        (known.route() == Route::Form).then_some(known)
    }

    /// Returns the case with the properties of its mesh.
    pub(crate) fn on_whole(&self, mesh: &Mesh) -> Self {
        self.with_traits(MeshTraits {
            kind: mesh.kind,
            is_surface: mesh.is_surface,
            has_inner_facets: self.has_inner_facets(mesh),
        })
    }

    fn with_traits(&self, traits: MeshTraits) -> Self {
        let mut known = self.clone();
        known.mesh_traits = Some(traits);
        known
    }

    /// Returns whether a condition or a flux has the tag of facets inside the mesh, which is not a part of one. The fluxes of forms ask
    /// for rates at the end of steps, which Crank-Nicolson does not have.
    pub(crate) fn has_inner_facets(&self, mesh: &Mesh) -> bool {
        // Generators tag sides alone.
        if self.file.mesh.generate.is_some() {
            return false;
        }
        let of_conditions = self.file.boundary.iter().filter_map(|section| section.r#where.as_deref());
        let method = self.file.time.as_ref().map(|time| time.method);
        let has_rates = method != Some(TimeMethod::CrankNicolson);
        let of_fluxes = self.fluxes().map(|(place, _)| place).filter(|_| has_rates);
        Region::any_inside(of_conditions.chain(of_fluxes).map(Region::from), mesh)
    }

    /// Returns whether a flux through the boundary or across an interface may depend on u, of an exchange by more than the difference of
    /// both sides.
    pub(crate) fn has_flux_of_unknown(&self) -> bool {
        let of_interface = |section: &InterfaceSection| {
            let mut values = interface::values(section, &[]).into_iter();
            values.any(|(_, value)| matches!(value, Entry::Text(text) if names_unknown(text)))
                || interface::fluxes(section).any(|flux| names_unknown(flux))
        };
        self.file.boundary.iter().any(BoundarySection::may_depend_on_unknown)
            || self.file.interface.iter().any(of_interface)
    }

    /// Returns the part and the side of each functional `flux`.
    fn fluxes(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.file.output.functionals.iter().filter_map(|functional| match functional {
            Functional::Flux { r#where, from, .. } => Some((r#where.as_str(), from.as_deref())),
            _ => None,
        })
    }

    /// Returns whether an equation in time is solved on a mesh, and not on a grid by alternating directions.
    pub(crate) fn is_transient_on_mesh(&self) -> bool {
        let is_grid = matches!(self.file.mesh.generate, Some(Generator::Grid { .. }));
        let method = self.file.time.as_ref().map(|time| time.method);
        self.file.equation.kind == EquationKind::Diffusion
            && (!is_grid || method.is_some_and(|method| method != TimeMethod::Adi))
    }
}

impl BoundarySection {
    /// Returns the key of a condition of reaction and diffusion that only forms have.
    fn key_of_form(&self) -> Option<&'static str> {
        let keys = [
            ("total", self.total.is_some()),
            ("flux", self.flux.is_some()),
            ("from", self.from.is_some()),
            ("neumann", self.has_neumann_of_unknown()),
            ("robin", self.has_robin_of_unknown()),
        ];
        keys.into_iter().find(|(_, given)| *given).map(|(key, _)| key)
    }

    fn has_neumann_of_unknown(&self) -> bool {
        self.neumann.as_ref().is_some_and(depends_on_unknown)
    }

    fn has_robin_of_unknown(&self) -> bool {
        let of =
            |robin: &RobinSection| [&robin.coefficient, &robin.value].into_iter().any(depends_on_unknown);
        self.robin.as_ref().is_some_and(of)
    }

    /// Returns whether the flux of a condition may depend on u, of an exchange by more than the difference to the outside.
    fn may_depend_on_unknown(&self) -> bool {
        let of_flux = |flux: &OfUnknowns<String>| match flux {
            OfUnknowns::One(text) => names_unknown(text),
            OfUnknowns::Each(texts) => texts.values().any(|text| names_unknown(text)),
        };
        self.flux.as_ref().is_some_and(of_flux)
            || self.has_neumann_of_unknown()
            || self.has_robin_of_unknown()
    }
}

fn is_simplex(kind: CellKind) -> bool {
    matches!(kind, CellKind::Triangle | CellKind::Tetrahedron)
}

/// Returns whether a formula, which may have vectors and constants, names u or that of the other side of an interface.
fn names_unknown(formula: &str) -> bool {
    let mut words = formula.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.any(|word| matches!(word, "u" | "u_other"))
}

/// Returns whether a formula in a value names u, the solution.
pub(crate) fn depends_on_unknown(value: &Value) -> bool {
    let names = Names { time: true, others: &["u"] };
    let of_text = |text: &String| {
        Expression::parse_with(text, &names).is_ok_and(|formula| formula.uses(Variable::Other(0)))
    };
    match value {
        Value::Text(text) => of_text(text),
        Value::Tensor(rows) => {
            let mut entries = rows.iter().flatten();
            entries.any(|entry| matches!(entry, Entry::Text(text) if of_text(text)))
        }
        Value::ByTag { by_tag, default } => by_tag.values().chain(default.as_deref()).any(depends_on_unknown),
        _ => false,
    }
}
