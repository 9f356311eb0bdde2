//! The sections, keys and defaults of case files.

mod amg;
mod amount;
mod cardiac;
mod coefficient;
mod finding;
mod functional;
mod generator;
mod gmg;
mod output;
mod pmg;
mod schema;
mod sides;
mod solver;
mod space;
mod time;

use std::path::PathBuf;

use std::collections::BTreeMap;

use femtile_solve::{Continuation, Region};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use amg::{
    AmgSection, CycleName, GraphName, LevelPrecision, MatrixAmg, PatchFormatName, SmootherName, named,
};
pub use amount::Amount;
pub use cardiac::{
    ActivationSection, EcgSection, GatesName, IntegrationName, MembraneRegion, MembraneSection,
    SphereSection, StimulusSection,
};
pub use coefficient::{Entries, Entry, OfUnknowns, Totals, Value};
pub use finding::FindingName;
pub use functional::{Exact, FieldOfRun, Functional};
pub use generator::{CellName, Generator, LShapeName, PlaneCellName};
pub use gmg::{BoxSmootherName, GmgSection, GmgStartName};
pub use output::{CompressOutput, CompressionName, PictureOutput, VtuOutput, VtuPart};
pub use pmg::PmgSection;
pub use schema::schema;
pub use sides::{PeriodicSection, RotationSection, TieSection};
pub use solver::{
    FormatName, Method, MetricName, NonlinearName, Operator, PartitionName, Precision, PreconditionerName,
    SolverSection,
};
pub use space::{Quadrature, SpaceSection};
pub use time::{
    CheckpointSection, CoefficientSource, MassName, SchemeName, TimeMethod, TimeSection, Times,
    WriteErrorName,
};

/// A case: mesh, equation, boundary conditions, solver and output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("allOf" = schema::sections_of_kinds()))]
pub struct CaseFile {
    /// The mesh.
    pub mesh: MeshSection,
    /// Regions of cells by comparisons, for values by tag. Of several entries that hold in a cell the last one names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub region: Vec<RegionSection>,
    /// The finite elements.
    #[serde(default)]
    pub space: SpaceSection,
    /// The unknowns of an equation with `kind = "form"`, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, UnknownSection>,
    /// The equation: −∇·(σ∇u) + λu = f, or another one by its `kind`.
    #[serde(default)]
    pub equation: EquationSection,
    /// Boundary conditions. Later entries override earlier ones, Dirichlet overrides the rest; facets without an entry have
    /// zero flux.
    #[serde(default)]
    pub boundary: Vec<BoundarySection>,
    /// Sources at points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<SourceSection>,
    /// Sides with the same u, or with a jump between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub periodic: Vec<PeriodicSection>,
    /// Sides that coincide and have meshes that need not match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tie: Vec<TieSection>,
    /// Facets inside the mesh across which u jumps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interface: Vec<InterfaceSection>,
    /// The membranes of heart cells, with `kind = "monodomain"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub membrane: Option<MembraneSection>,
    /// Currents into parts of the tissue, with `kind = "monodomain"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stimulus: Vec<StimulusSection>,
    /// Activation and repolarisation, with `kind = "monodomain"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<ActivationSection>,
    /// Electrodes, with `kind = "monodomain"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecg: Option<EcgSection>,
    /// Time stepping, with `kind = "diffusion"` and `"monodomain"`, and with `"form"` for an equation with a `capacity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeSection>,
    /// Modes in place of a solution: the smallest eigenvalues of an equation that is linear and symmetric, with its functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<ModesSection>,
    /// Load steps, with `kind = "form"`: t grows from 0 to 1, and each step begins at the solution of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<ContinuationSection>,
    /// The solver.
    #[serde(default)]
    pub solver: SolverSection,
    /// The output.
    #[serde(default)]
    pub output: OutputSection,
}

/// `[mesh]`: exactly one of `file` and `generate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["file"], "properties": { "check": { "const": "full" } } },
    { "required": ["generate"], "not": { "required": ["tags"] } }
]))]
pub struct MeshSection {
    /// A mesh file (.msh, .vtu, .pvtu, .vtk, .node, .ele, .mesh, .inp, .pts, .elem), relative to the folder of the case file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The cell array of a .vtu, .pvtu or .vtk file that gives the tags of cells, such as MaterialIDs; by default one with a usual
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    /// A generated mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<Generator>,
    /// Factor of all coordinates: 0.001 makes millimetres of openCARP's micrometres.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub scale: f64,
    /// Merge coincident nodes, which closes cracks.
    #[serde(default)]
    pub merge: bool,
    /// Findings of the mesh check to accept as warnings instead of errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<FindingName>,
    /// How the mesh is checked: `full` for files, `generated` for generated meshes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckName>,
    /// Number of uniform refinements: triangles and quadrilaterals are split into four, tetrahedra and hexahedra
    /// into eight.
    #[serde(default)]
    #[schemars(range(max = 10))]
    pub refine: u32,
}

/// Kinds of the mesh check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckName {
    /// All that is looked for in files: facets of cells are matched, coincident nodes and overlapping facets searched for.
    Full,
    /// Shapes and orientations of the cells of a generated mesh; the generators guarantee the rest.
    Generated,
}

fn one() -> f64 {
    1.0
}

/// A `[[region]]`: cells that get a tag with a name, in place of the one that they have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegionSection {
    /// The name, for `by_tag`: not a number.
    #[schemars(regex(pattern = "[^0-9]"))]
    pub name: String,
    /// A comparison such as `x^2 + y^2 < 0.25` that holds in the middle of the cells.
    pub r#where: String,
}

/// Kinds of equation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EquationKind {
    /// The stationary equation −∇·(σ∇u) + λu = f with λ ≥ 0.
    #[default]
    ReactionDiffusion,
    /// The equation in time C u_t = ∇·(D∇u) + c·∇u + ru + f, on a mesh without c, on a grid without C.
    Diffusion,
    /// The monodomain equation of the heart χ C_m V_t = ∇·(σ∇V) − χ I_ion + I_stim, on triangles and tetrahedra.
    Monodomain,
    /// Linear elasticity of small strains: −∇·σ(u) = f with the displacements u.
    Elasticity,
    /// Convection and diffusion: −∇·(σ∇u) + b·∇u + λu = f.
    ConvectionDiffusion,
    /// An equation of the case: an energy, or a flux and a source, as formulas of the unknown of `[unknown]`.
    Form,
}

impl EquationKind {
    /// Returns whether it is an equation in time.
    pub(crate) fn is_in_time(self) -> bool {
        matches!(self, Self::Diffusion | Self::Monodomain)
    }

    /// Returns whether it is one of the equations that are solved as a form.
    pub(crate) fn is_form(self) -> bool {
        matches!(self, Self::Elasticity | Self::ConvectionDiffusion | Self::Form)
    }
}

/// `[continuation]`: load steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContinuationSection {
    /// Steps of t, of equal length.
    #[schemars(range(min = 1))]
    pub steps: usize,
    /// How often a step that does not converge is halved.
    pub max_halvings: u32,
}

impl Default for ContinuationSection {
    fn default() -> Self {
        let Continuation { steps, max_halvings } = Continuation::default();
        Self { steps, max_halvings }
    }
}

/// `[modes]`: eigenvalues λ of A u = λ M u with the stiffness matrix A and the mass matrix M.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModesSection {
    /// The number of the smallest eigenvalues.
    #[schemars(range(min = 1))]
    pub count: usize,
}

/// An unknown of `[unknown]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnknownSection {
    /// The components of a vector: their number, or `"dimension"` for one along each axis. Without it the unknown is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<ComponentsName>,
    /// The polynomial degree of its elements; that of `[space]` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degree: Option<u32>,
}

/// The components of an unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ComponentsName {
    /// So many.
    Count(#[schemars(range(min = 1, max = 16))] usize),
    /// One along each axis.
    Axes(AxesName),
}

/// The word for a component along each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AxesName {
    /// As many as the mesh has dimensions.
    Dimension,
}

/// States of a body in the plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaneName {
    /// No strain across the plane: a long body.
    Strain,
    /// No stress across the plane: a thin plate.
    Stress,
}

/// `[equation]`: the coefficients of −∇·(σ∇u) + λu = f or of another equation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("allOf" = schema::keys_of_kinds()))]
pub struct EquationSection {
    /// The kind of equation.
    pub kind: EquationKind,
    /// Reaction-diffusion, convection-diffusion and monodomain: conductivity σ > 0: a number, an expression in x, y, z (and u, of
    /// reaction-diffusion), a symmetric tensor, values by tag, or a cell field.
    pub sigma: Value,
    /// Reaction-diffusion and convection-diffusion: reaction λ ≥ 0, of any sign where a coefficient depends on u, in the forms of `sigma` except
    /// tensors.
    pub lambda: Value,
    /// Source f, in the forms of `sigma` but for tensors, or an array with an entry for each component; for diffusion a
    /// number or an expression in x, y, z, t and, on meshes, u; for elasticity the force per volume, an array with an entry for
    /// each axis; of a form a formula, or an array of formulas for a vector; of a form with several unknowns a table of them.
    pub source: OfUnknowns<Value>,
    /// Diffusion on meshes: the factor C of ∂u/∂t, positive: a number, an expression in x, y, z and u, values by tag, or a cell
    /// field; 1 when absent. Of heat the density times the specific heat, with the thermal conductivity as `diffusion`. Of a form in
    /// time or with `[modes]` a formula, of a vector also an array with the factor of each component, 0 of one without ∂u/∂t, or a matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<OfUnknowns<Value>>,
    /// Form in time: in place of `capacity` the content H(u) per volume, such as the heat with the latent heat of a material that melts: the
    /// equation has ∂H(u)/∂t, and its integral changes exactly by what flows in. A formula, of a vector an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enthalpy: Option<OfUnknowns<Value>>,
    /// Diffusion: D, positive semidefinite: a number, an expression in x, y, z and, on meshes, t and u, or a symmetric
    /// tensor; 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffusion: Option<Value>,
    /// Diffusion: c, a number or an expression in x, y, z for each axis; 0 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convection: Option<Vec<Entry>>,
    /// Diffusion: r, a number or an expression in x, y, z and, on meshes, t and u; 0 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reaction: Option<Entry>,
    /// Diffusion and a form in time: u at the start, a number or an expression in x, y, z; 0 when absent. Of a steady equation with a
    /// coefficient or a flux that depends on u, and of a steady form: the first iterate. Of a form with several components it is that of
    /// all, or an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<OfUnknowns<Entries>>,
    /// Elasticity: Young's modulus, positive: a number, an expression in x, y, z, values by tag, or a cell field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub young: Option<Value>,
    /// Elasticity: Poisson's ratio, above -1 and below 0.5, in the forms of `young`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poisson: Option<Value>,
    /// Elasticity: the coefficient of thermal expansion, in the forms of `young`; with `temperature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expansion: Option<Value>,
    /// Elasticity with `expansion`: the temperature, in the forms of `young`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Value>,
    /// Elasticity with `expansion`: the temperature without thermal strain, in the forms of `young`; 0 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_temperature: Option<Value>,
    /// Elasticity with `[modes]`: the mass density, positive, in the forms of `young`; 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub density: Option<Value>,
    /// Elasticity in the plane: `strain`, the default, or `stress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plane: Option<PlaneName>,
    /// Convection-diffusion: b, an array with a number or an expression in x, y, z for each axis, or a cell field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velocity: Option<Value>,
    /// Names of numbers, vectors (an array with an entry for each axis) and tensors that formulas use, in the forms of `sigma`: of a form
    /// those of the equation, of other kinds those of `flux` in `[[boundary]]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, Value>,
    /// Form: definitions `name = formula`, one in a line or separated by `;`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub define: Option<String>,
    /// Form: the energy density W, a formula of the unknown and its gradient, such as `grad(u).grad(u)/2`. The solution makes the
    /// energy less the work of `source` and of fluxes through the boundary stationary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<String>,
    /// Form: the flux F of ∫ F:∇v dx = ∫ source·v dx + …, a formula such as `sigma*grad(u)`; a vector, or a matrix with a row for
    /// each component of an unknown that is a vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flux: Option<OfUnknowns<String>>,
    /// Form and convection-diffusion: stabilises convection in elements of degree 1. `"supg"` has the test functions of streamline upwind
    /// Petrov-Galerkin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stabilise: Option<StabilisationName>,
}

/// Stabilisations of convection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StabilisationName {
    /// Streamline upwind Petrov-Galerkin.
    Supg,
}

const ZERO: Value = Value::Number(0.0);

impl EquationSection {
    /// Returns the source of an equation with one unknown.
    pub(crate) fn source(&self) -> &Value {
        self.source.one().unwrap_or(&ZERO)
    }
}

impl Default for EquationSection {
    fn default() -> Self {
        Self {
            kind: EquationKind::ReactionDiffusion,
            sigma: Value::Number(1.0),
            lambda: Value::Number(0.0),
            source: OfUnknowns::One(ZERO),
            capacity: None,
            enthalpy: None,
            diffusion: None,
            convection: None,
            reaction: None,
            initial: None,
            young: None,
            poisson: None,
            expansion: None,
            temperature: None,
            reference_temperature: None,
            density: None,
            plane: None,
            velocity: None,
            constants: BTreeMap::new(),
            define: None,
            energy: None,
            flux: None,
            stabilise: None,
        }
    }
}

/// A `[[source]]`: a source at a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceSection {
    /// The point: two or three coordinates.
    #[schemars(length(min = 2, max = 3))]
    pub point: Vec<f64>,
    /// The amount that it gives, the same on every mesh; of a vector an array with an entry for each component, of several unknowns a table.
    /// With `axisymmetric` that of the circle through the point.
    pub total: OfUnknowns<Totals>,
}

/// An `[[interface]]`: `where`, `between` or `sides`, and `conductance` or `flux`, of elasticity `stiffness` or `flux`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("allOf" = [
    { "oneOf": [
        { "required": ["where"], "properties": { "name": false } },
        { "required": ["between"], "properties": { "from": false } },
        { "required": ["sides"], "properties": { "from": false, "name": false } },
    ] },
    { "oneOf": [{ "required": ["conductance"] }, { "required": ["stiffness"] }, { "required": ["flux"] }] }
]))]
pub struct InterfaceSection {
    /// The tag of facets between cells.
    #[serde(default, deserialize_with = "some_text_or_integer", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text_or_integer")]
    pub r#where: Option<String>,
    /// The tags of the cells on the two sides.
    #[serde(default, deserialize_with = "two_texts_or_integers", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::two_texts_or_integers")]
    pub between: Option<[String; 2]>,
    /// Two sides of parts that touch without common nodes, facet at facet; u is that of the first one.
    #[serde(default, deserialize_with = "two_texts_or_integers", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::two_texts_or_integers")]
    pub sides: Option<[String; 2]>,
    /// With `where`, for formulas that depend on u or on the `normal`: the tag of the cells whose values u has and out of which the normal
    /// points; `u_other` is that of the other side. With `between` and `sides` these are the first ones.
    #[serde(default, deserialize_with = "some_text_or_integer", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text_or_integer")]
    pub from: Option<String>,
    /// With `between`: a tag for the facets, for `where` of conditions and functionals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The flux from one side to the other per area and difference of u, not negative: a number or a formula; of several unknowns a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conductance: Option<OfUnknowns<Entry>>,
    /// Elasticity: the force between the sides per area and difference of displacements, not negative, a number or a formula; a table
    /// for the direction of the normal and those across it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stiffness: Option<Stiffness>,
    /// In place of these: what flows from the second side into the first one per area, of elasticity the force on the first one: a
    /// formula of u, `u_other`, the `normal` out of the first side, x, y, z, t and constants; of several unknowns a table. It needs
    /// `between`, `sides` or `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flux: Option<OfUnknowns<String>>,
}

/// The stiffness of an interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Stiffness {
    /// The same in all directions.
    All(Entry),
    /// By direction.
    Directions(StiffnessByDirection),
}

/// The stiffness of an interface by direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StiffnessByDirection {
    /// Along the normal.
    pub normal: Entry,
    /// Across it.
    pub tangential: Entry,
}

/// A `[[boundary]]`: `where` or `nodes`, and exactly one of `dirichlet`, `neumann`, `robin`, `traction`, `pressure`, `flux`, `total`,
/// `floating`, which may have a `total`, and `periodic`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("allOf" = schema::place_and_condition()))]
pub struct BoundarySection {
    /// `all`, the name of a tag, the number of a tag, or a comparison such as `x < 1e-9` that all nodes of a
    /// facet satisfy.
    #[serde(default, deserialize_with = "some_text_or_integer", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text_or_integer")]
    pub r#where: Option<String>,
    /// The tag of the cells on the side of the facets that the condition holds on, out of
    /// which the `normal` points. Facets inside the mesh need it where the condition depends on the side.
    #[serde(default, deserialize_with = "some_text_or_integer", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text_or_integer")]
    pub from: Option<String>,
    /// With `dirichlet`, in place of `where`: a comparison such as `x < 1e-9 && y < 1e-9` that nodes of the mesh satisfy;
    /// u has the value at them, and along edges, faces and cells whose corners all satisfy it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// The value of u; of several components all have it, or each its entry of an array. Of displacements the entry `"free"`
    /// leaves a component without a value. Of several unknowns a table of values; those that are left out have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirichlet: Option<OfUnknowns<Value>>,
    /// The flux σ ∂u/∂n into the domain, as for `dirichlet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neumann: Option<Value>,
    /// Exchange with the outside: σ ∂u/∂n = coefficient · (value − u).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robin: Option<RobinSection>,
    /// Elasticity: the force per area on the boundary, an array with an entry for each axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traction: Option<Vec<Entry>>,
    /// Elasticity: the force per area against the outer normal, a number, an expression, by tag or a cell field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Value>,
    /// The flux into the body, a formula of the unknown, the `normal` and `constants`, such as `eps*5.670374419e-8*(T_out^4 - u^4)`; of
    /// several unknowns a table of formulas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flux: Option<OfUnknowns<String>>,
    /// The flux into the body through all facets together, spread evenly by area; of a vector an array with an entry for each
    /// component, of several unknowns a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<OfUnknowns<Totals>>,
    /// u is an unknown constant here, each component of a vector, and the flux through all
    /// facets together is `total`, 0 when absent; of several unknowns a table such as `{ phi = true }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floating: Option<OfUnknowns<bool>>,
    /// The opposite side of the box again; of an equation in time, where both sides of an axis have it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub periodic: bool,
}

impl BoundarySection {
    /// Returns the value of an equation with one unknown.
    pub(crate) fn dirichlet(&self) -> Option<&Value> {
        self.dirichlet.as_ref().and_then(OfUnknowns::one)
    }

    /// Returns the name of the condition.
    pub(crate) fn condition(&self) -> &'static str {
        match (&self.dirichlet, &self.neumann, &self.robin) {
            (Some(_), ..) => "dirichlet",
            (_, Some(_), _) => "neumann",
            (.., Some(_)) => "robin",
            _ if self.traction.is_some() => "traction",
            _ if self.pressure.is_some() => "pressure",
            _ if self.flux.is_some() => "flux",
            _ if self.floats() => "floating",
            _ if self.total.is_some() => "total",
            _ if self.floating.is_some() => "floating",
            _ => "periodic",
        }
    }

    /// Returns whether an unknown is an unknown constant.
    pub(crate) fn floats(&self) -> bool {
        match &self.floating {
            None => false,
            Some(OfUnknowns::One(floats)) => *floats,
            Some(OfUnknowns::Each(floats)) => floats.values().any(|floats| *floats),
        }
    }

    /// Returns the facets that it holds on.
    pub(crate) fn region(&self) -> Region {
        of_side(self.place().1, self.from.as_deref())
    }

    /// Returns the key that says where, and its value; empty where none is given.
    pub(crate) fn place(&self) -> (&'static str, &str) {
        match (&self.r#where, &self.nodes) {
            (None, Some(nodes)) => ("nodes", nodes),
            (place, _) => ("where", place.as_deref().unwrap_or_default()),
        }
    }
}

/// Returns the facets of a place, at cells with a tag if one is given.
pub(crate) fn of_side(place: &str, from: Option<&str>) -> Region {
    let all = Region::from(place);
    match from {
        Some(cells) => all.side(cells),
        None => all,
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// `where = 3` is as good as `where = "3"`.
fn text_or_integer<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(text_of(toml::Value::deserialize(deserializer)?))
}

fn text_of(value: toml::Value) -> String {
    match value {
        toml::Value::String(text) => text,
        number => number.to_string(),
    }
}

/// The same of an array.
fn texts_or_integers<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<toml::Value>::deserialize(deserializer)?.into_iter().map(text_of).collect())
}

/// The same of two, which may be left out.
fn two_texts_or_integers<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<[String; 2]>, D::Error> {
    Ok(Some(<[toml::Value; 2]>::deserialize(deserializer)?.map(text_of)))
}

/// The same of a key that may be left out.
fn some_text_or_integer<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    text_or_integer(deserializer).map(Some)
}

/// The two numbers of a Robin condition σ ∂u/∂n = coefficient · (value − u).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RobinSection {
    /// Transfer coefficient, not negative.
    pub coefficient: Value,
    /// The value outside, as for `dirichlet`.
    pub value: Value,
}

/// `[output]`: results to write, and their folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSection {
    /// Folder for all results, relative to the folder from which the program is started; created when missing.
    pub directory: PathBuf,
    /// Write the solution for ParaView: `solution.vtu`, or `solution.vti` where it lives on a grid; `"surface"` writes the
    /// boundary of the mesh alone, in frames too, `"pieces"` a file for each rank and `solution.pvtu`, which names them.
    pub vtu: VtuOutput,
    /// Write `solution.vtkhdf`, one HDF5 file for ParaView: the frames of a run in time, else the solution, with the mesh once.
    pub vtkhdf: bool,
    /// Draw the history of residuals as `residuals.svg`, where a solve has one.
    pub plot: bool,
    /// Draw the solution as `picture.png`: the boundary and a cut of bodies, plane meshes from above; the name of a field
    /// draws that one.
    pub picture: PictureOutput,
    /// Write `report.html`, a page with a view of the solution, which needs no network.
    pub report: bool,
    /// Compress the arrays of `solution.vtu` and of frames, with zlib unless another method is named.
    pub compress: CompressOutput,
    /// Fields to write into `solution.vtu` beside u.
    pub fields: Vec<FieldName>,
    /// Numbers to compute from the solution, each under its name in the report.
    pub functionals: Vec<Functional>,
    /// Sides of a linear equation with one number as unknown: the flux into the body through each of them at u = 1 on another one and 0
    /// on the rest, as a matrix, such as that of capacitances.
    #[serde(deserialize_with = "texts_or_integers", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::texts_or_integers")]
    pub matrix: Vec<String>,
}

/// A field computed from the solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FieldName {
    /// The recovered gradient ∇u at the nodes.
    Gradient,
    /// The flux density −σ∇u at the nodes, from the recovered gradient; of other equations minus that of their formulas.
    Flux,
    /// Of elasticity the stresses at the nodes and the equivalent one, from the recovered gradient.
    Stress,
    /// Of elasticity the strains at the nodes, from the recovered gradient.
    Strain,
    /// The estimated discretization error of each cell in the energy norm; its total goes into the report.
    Error,
}

impl Default for OutputSection {
    fn default() -> Self {
        Self {
            directory: "out".into(),
            vtu: VtuOutput::Whole(true),
            vtkhdf: false,
            plot: true,
            picture: PictureOutput::Default(false),
            report: false,
            compress: CompressOutput::Default(false),
            fields: Vec::new(),
            functionals: Vec::new(),
            matrix: Vec::new(),
        }
    }
}
