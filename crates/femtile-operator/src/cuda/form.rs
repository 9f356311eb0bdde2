//! A discrete form that stays on a GPU: residual, products with the tangent, and the values of its matrix at a state.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use femtile_device::cpu::zeroed_vec;
use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cpu, Cuda, parallel};
use femtile_expression::{Expression, Program as Formula};
use femtile_form::{Domain, Form, Input, Integrand, Varying};
use femtile_linalg::vector::VectorKernels;
use femtile_space::{Element, LinearConstraints};
use femtile_sparse::{Csr, StoredMatrix};

use super::numbers::PointText;
use crate::cpu::{CpuOperator, LANES, Pattern};
use crate::discrete_form::State;
use crate::error::OperatorError;
use crate::reference;
use crate::sites::cell_rule;

static PRODUCTS: Program =
    Program { name: "form_products", source: include_str!("products.cu"), headers: &[] };
static ENTRIES: Program = Program { name: "form_entries", source: include_str!("entries.cu"), headers: &[] };
static MATRIX: Program = Program { name: "form_matrix", source: include_str!("matrix.cu"), headers: &[] };

/// Threads of a block, and the most of a team.
const THREADS: usize = 128;

type Products = (Write<f64>, Structure, Structure);
type Sums = (Write<f64>, Write<f64>, Read<f64>, Read<u32>, Read<u32>, u64, u64);
type Matrix = (Write<f64>, Structure, Structure);
type Entries = (Write<f64>, Read<u64>, Read<f64>, u64, u32);

/// Returns the threads of a team: a power of two for few shape functions or points.
fn team(n: usize) -> usize {
    n.next_power_of_two().min(THREADS)
}

/// The text of a program of an integrand with its numbers that stay.
struct Part {
    text: PointText,
    varying: Vec<Varying>,
}

impl Part {
    fn new(integrand: &Integrand, program: &Formula) -> Self {
        Self { text: PointText::of(integrand, integrand.by_state(program)), varying: integrand.varying() }
    }

    fn reads(&self, input: Varying) -> bool {
        self.varying.iter().position(|&own| own == input).is_some_and(|at| self.text.reads(at))
    }

    /// Writes the function, the one that collects its varying inputs, and their numbers. `parameters` and `source` say where these
    /// are.
    fn write(&self, name: &str, parameters: &str, source: &dyn Fn(Varying) -> String, header: &mut String) {
        let [of_cell, at_point] = self.text.n_numbers();
        let upper = name.to_uppercase();
        let _ = writeln!(
            header,
            "const u32 {upper}_BEFORE = {}, {upper}_OF_CELL = {of_cell}, {upper}_AT_POINT = {at_point};",
            self.varying.len()
        );
        header.push_str(&self.text.function(name));
        let _ = writeln!(header, "__device__ inline void {name}_inputs(double* in, {parameters}) {{");
        for (at, &input) in self.varying.iter().enumerate() {
            let _ = writeln!(header, "    in[{at}] = {};", source(input));
        }
        header.push_str("}\n");
    }

    /// Brings the numbers of all cells to the device: of each cell, then of its points.
    fn numbers(
        &self,
        device: &Cuda,
        operator: &CpuOperator<'_>,
        integrand: &Integrand,
    ) -> Result<Buffer<f64, Cuda>, OperatorError> {
        let [of_cell, at_point] = self.text.n_numbers();
        let per_cell = of_cell + at_point * operator.basis.n_q;
        let mut numbers = zeroed_vec::<f64>(operator.discrete().space().n_cells() * per_cell);
        if per_cell > 0 {
            operator.cpu.install(|| {
                let found = self.text.evaluate(operator, integrand, &State::default());
                parallel::for_chunks_mut(&mut numbers, per_cell, |begin, to| {
                    let (own, at_points) = to.split_at_mut(of_cell);
                    found.write(begin / per_cell, own, at_points);
                });
            });
        }
        Ok(Buffer::from_vec(device, numbers)?)
    }
}

/// The sizes of an element that programs are compiled for.
#[derive(Clone, Copy)]
struct Sizes {
    n_nodes: usize,
    n_points: usize,
    components: usize,
    dimension: usize,
}

impl Sizes {
    fn of(integrand: &Integrand, components: usize, element: &Element) -> Self {
        let n_points = cell_rule(element).n_q();
        Self { n_nodes: element.n_dofs(), n_points, components, dimension: integrand.dimension() }
    }

    /// Threads of a team of the products, teams of a block, and the bytes of shared memory of a block.
    fn teams(self) -> (usize, usize, usize) {
        let Self { n_nodes, n_points, components, dimension } = self;
        let team = team(n_nodes.max(n_points));
        let per_team = 8 * components * (3 * n_nodes + 2 * n_points * (1 + dimension));
        let teams = (THREADS / team).min(MOST_SHARED / per_team).max(1);
        (team, teams, teams * per_team)
    }

    fn header(self) -> String {
        let Self { components, dimension, .. } = self;
        let header = Expression::CUDA_HEADER;
        format!(
            "#pragma once\n{header}\nconst u32 DIMENSION = {dimension}, COMPONENTS = {components}, VALUES = {};\n",
            components * (1 + dimension)
        )
    }
}

/// The bytes of shared memory up to which a block has several teams.
const MOST_SHARED: usize = 48 << 10;

/// The values of u and its gradient at a point up to which a GPU is asked for fewer blocks, with more registers.
const FEW: usize = 4;

/// Returns whether one of the programs reads the rate of a component.
fn reads_rate(integrand: &Integrand) -> bool {
    let programs = [integrand.residual(), integrand.tangent(), integrand.derivative()];
    let inputs = integrand.inputs().iter().enumerate();
    let mut rates = inputs.filter(|(_, input)| matches!(input, Input::Rate(_)));
    rates.any(|(at, _)| programs.iter().any(|program| program.reads(at)))
}

/// The program of residual and product, and of u at the points.
fn products_program(integrand: &Integrand, sizes: Sizes) -> (Specialisation, [Part; 2]) {
    let parts = [integrand.residual(), integrand.tangent()].map(|program| Part::new(integrand, program));
    let per_component = 1 + sizes.dimension;
    let source = |input| match input {
        Varying::State(slot) => format!("state[{slot}]"),
        Varying::Rate(component) => format!("rate[{}]", component * per_component),
        Varying::Direction(slot) => format!("direction[{slot}]"),
        Varying::Time => "time".into(),
        Varying::Shift => "shift".into(),
    };
    let mut header = sizes.header();
    let _ = writeln!(header, "const bool READS_RATE = {};", reads_rate(integrand));
    // With the registers that the compiler takes for few values, some of them spill.
    let blocks = if sizes.components * per_component <= FEW { ", 4" } else { "" };
    let _ = writeln!(header, "#define FORM_BOUNDS TEAM * TEAMS{blocks}");
    let parameters =
        "const double* state, const double* rate, const double* direction, double time, double shift";
    for (part, name) in parts.iter().zip(["residual", "tangent"]) {
        part.write(name, parameters, &source, &mut header);
    }
    let (team, teams, _) = sizes.teams();
    let program = PRODUCTS
        .of::<f64>()
        .define("FEMTILE_NODES", sizes.n_nodes)
        .define("FEMTILE_POINTS", sizes.n_points)
        .define("FEMTILE_TEAM", team)
        .define("FEMTILE_TEAMS", teams)
        .header("products.cuh", header);
    (program, parts)
}

/// The program that adds the integral of an integrand over cells to a matrix.
fn matrix_program(integrand: &Integrand, sizes: Sizes) -> (Specialisation, Part) {
    let part = Part::new(integrand, integrand.derivative());
    let (entries, per_component) = (integrand.entries(), 1 + sizes.dimension);
    let mut header = sizes.header();
    let _ = writeln!(header, "const u32 ENTRIES = {};", entries.len().max(1));
    let source = |input| match input {
        Varying::State(slot) => format!("__ldg(states + {slot} * stride)"),
        Varying::Rate(component) => {
            format!("__ldg(states + (VALUES + {}) * stride)", component * per_component)
        }
        // D' reads no direction.
        Varying::Direction(_) => "0".into(),
        Varying::Time => "time".into(),
        Varying::Shift => "shift".into(),
    };
    let parameters = "const double* states, u32 stride, double time, double shift";
    // Inputs that are not read may have no array.
    let reads = |input: Varying| match part.reads(input) {
        true => source(input),
        false => "0".into(),
    };
    part.write("derivative", parameters, &reads, &mut header);
    header.push_str(
        "__device__ inline void add_block(double (&block)[COMPONENTS][COMPONENTS], const double* entries, \
         const double* test, const double* trial) {\n",
    );
    for (at, [row, column]) in entries.iter().enumerate() {
        let [of_row, of_column] = [row, column].map(|slot| (slot / per_component, slot % per_component));
        let _ = writeln!(
            header,
            "    block[{}][{}] += test[{}] * entries[{at}] * trial[{}];",
            of_row.0, of_column.0, of_row.1, of_column.1
        );
    }
    header.push_str("}\n");
    let team = team(sizes.n_nodes);
    let program = MATRIX
        .of::<f64>()
        .define("FEMTILE_NODES", sizes.n_nodes)
        .define("FEMTILE_POINTS", sizes.n_points)
        .define("FEMTILE_TEAM", team)
        .define("FEMTILE_TEAMS", THREADS / team)
        .header("derivative.cuh", header);
    (program, part)
}

/// The program that changes entries of arrays.
pub(super) fn entries_program() -> Specialisation {
    ENTRIES.of::<f64>()
}

/// Returns the programs of the integral of an integrand over cells with an element.
pub(super) fn programs(integrand: &Integrand, components: usize, element: &Element) -> [Specialisation; 2] {
    let sizes = Sizes::of(integrand, components, element);
    [products_program(integrand, sizes).0, matrix_program(integrand, sizes).0]
}

/// Returns the programs of residual, product and matrix of a form on cells with an element, to be compiled ahead.
pub fn form_programs(form: &Form, element: &Element) -> Vec<Specialisation> {
    let cells = form.integrals().iter().filter(|integral| integral.domain == Domain::Cells);
    let of_cells = cells.flat_map(|integral| programs(&integral.integrand, form.n_components(), element));
    of_cells.chain([entries_program()]).collect()
}

/// A function on a GPU, the rate and the numbers of a time discretization, as [`State`].
#[derive(Clone, Copy)]
pub struct CudaState<'s> {
    /// u: `[n_unknowns]`.
    pub u: &'s Buffer<f64, Cuda>,
    /// ∂u/∂t, zero if there is none.
    pub rate: Option<&'s Buffer<f64, Cuda>>,
    /// The time.
    pub time: f64,
    /// α = ∂(∂u/∂t)/∂u.
    pub shift: f64,
}

impl CudaState<'_> {
    /// Calls a function with the state on the host.
    fn on_host<R>(
        &self,
        use_it: impl FnOnce(&State<'_>) -> Result<R, OperatorError>,
    ) -> Result<R, OperatorError> {
        let rate = self.rate.map(Buffer::host_view).transpose()?.unwrap_or_default();
        use_it(&State { u: &self.u.host_view()?, rate: &rate, time: self.time, shift: self.shift })
    }
}

/// A matrix on a GPU with the pattern of a form.
pub struct CudaFormMatrix {
    matrix: Csr<f64, Cuda>,
    pattern: Pattern,
    offsets: Buffer<u64, Cuda>,
    /// Sums of the last refill.
    values: Buffer<f64, Cuda>,
    /// The diagonal of constrained unknowns.
    constrained: Buffer<u64, Cuda>,
    ones: Buffer<f64, Cuda>,
}

impl CudaFormMatrix {
    /// Returns the matrix.
    pub fn matrix(&self) -> &Csr<f64, Cuda> {
        &self.matrix
    }
}

/// The products of an integral over the cells.
struct ProductsOfIntegral {
    program: Specialisation,
    /// Of residual and tangent.
    numbers: [Buffer<f64, Cuda>; 2],
}

/// The matrix of an integral over the cells.
struct MatrixOfIntegral {
    program: Specialisation,
    numbers: Buffer<f64, Cuda>,
    reads_state: bool,
}

/// A discrete form on a GPU: geometry, numbering and coefficients stay there.
///
/// Cells are integrated on the GPU, facets, which are few, on the host. Results have the same bits in every run, and are those of
/// [`CpuOperator`] to rounding.
///
/// # Cost
/// Keeps $8(d^2 + 1)$ bytes per point, 8 per cell and shape function, and 8 per number of a cell or a point that coefficients give;
/// a product writes 16 more per unknown of a cell, a matrix that depends on u its values at the points.
pub struct CudaForm<'o, 'a> {
    operator: &'o CpuOperator<'a>,
    device: Cuda,
    dofs: Buffer<u32, Cuda>,
    geometry: Buffer<f64, Cuda>,
    /// `[1 + d][n][n_q]` and `[1 + d][n_q][n]`.
    tables: [Buffer<f64, Cuda>; 2],
    begins: Buffer<u32, Cuda>,
    places: Buffer<u32, Cuda>,
    /// Most cells of a degree of freedom.
    most: u32,
    products: Vec<OnceCell<ProductsOfIntegral>>,
    matrices: Vec<OnceCell<MatrixOfIntegral>>,
    found: RefCell<Option<Buffer<f64, Cuda>>>,
    /// Unknowns at which r and y are zero, with the zeros.
    constrained: Option<(Buffer<u64, Cuda>, Buffer<f64, Cuda>)>,
    /// The last time with the residual of the facets that depend on nothing else.
    fixed: RefCell<Option<(f64, Buffer<f64, Cuda>)>>,
}

impl<'o, 'a> CudaForm<'o, 'a> {
    /// Brings a form to a GPU.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: &Cuda, operator: &'o CpuOperator<'a>) -> Result<Self, OperatorError> {
        let (space, basis) = (operator.discrete().space(), &operator.basis);
        let (n, n_q, n_cells) = (basis.n, basis.n_q, space.n_cells());
        let n_geometry = (basis.dimension * basis.dimension + 1) * n_q;
        let mut geometry = zeroed_vec::<f64>(n_cells * n_geometry);
        operator.cpu.install(|| {
            parallel::for_chunks_mut(&mut geometry, n_geometry, |begin, to| {
                let position = begin / n_geometry;
                to.copy_from_slice(&operator.geometry.of_cell(position / LANES, position % LANES));
            });
        });
        let mut turned = vec![0.0; basis.tables.len()];
        for (table, to) in basis.tables.chunks_exact(n * n_q).zip(turned.chunks_exact_mut(n * n_q)) {
            (0..n * n_q).for_each(|at| to[at % n * n_q + at / n] = table[at]);
        }
        let n_integrals = operator.cells.len();
        Ok(Self {
            operator,
            dofs: Buffer::from_host(device, &operator.dofs)?,
            geometry: Buffer::from_vec(device, geometry)?,
            tables: [Buffer::from_vec(device, turned)?, Buffer::from_host(device, &basis.tables)?],
            begins: Buffer::from_host(device, &operator.places.offsets)?,
            places: Buffer::from_host(device, &operator.places.places)?,
            most: operator.places.offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0),
            products: (0..n_integrals).map(|_| OnceCell::new()).collect(),
            matrices: (0..n_integrals).map(|_| OnceCell::new()).collect(),
            found: RefCell::default(),
            constrained: None,
            fixed: RefCell::default(),
            device: device.clone(),
        })
    }

    /// Makes r and y of [`Self::products`] zero at the constrained unknowns, of whatever value the cells give there.
    ///
    /// # Errors
    /// [`OperatorError::Length`]; [`OperatorError::Mismatch`] for constraints that combine unknowns.
    pub fn constrain(&mut self, constraints: &LinearConstraints) -> Result<(), OperatorError> {
        let (found, expected) = (constraints.n_dofs(), self.operator.discrete().n_unknowns());
        if found != expected {
            return Err(OperatorError::Length { field: "constraints", found, expected });
        }
        let dofs = constraints.dofs();
        if constraints.combines_dofs() {
            return Err(combined());
        }
        let places = dofs.iter().map(|&dof| u64::from(dof)).collect();
        let zeros = Buffer::zeros(&self.device, dofs.len())?;
        self.constrained = Some((Buffer::from_vec(&self.device, places)?, zeros));
        Ok(())
    }

    /// Returns whether the shared memory of a block takes the unknowns of a cell, as [`Self::products`] needs it.
    pub fn fits(&self) -> bool {
        let most = self.device.properties().shared_bytes_per_block();
        self.sizes().teams().2 <= most
    }

    fn sizes(&self) -> Sizes {
        let (basis, components) = (&self.operator.basis, self.operator.discrete().form().n_components());
        Sizes { n_nodes: basis.n, n_points: basis.n_q, components, dimension: basis.dimension }
    }

    fn products_of(&self, integral: usize) -> Result<&ProductsOfIntegral, OperatorError> {
        let of = &self.products[integral];
        if let Some(made) = of.get() {
            return Ok(made);
        }
        let integrand = self.operator.cells[integral];
        let sizes = self.sizes();
        let (bytes, most) = (sizes.teams().2, self.device.properties().shared_bytes_per_block());
        if bytes > most {
            let message = format!(
                "a cell needs {bytes} bytes of shared memory and a block has {most}: take a lower degree or the CPU"
            );
            return Err(OperatorError::Mismatch(message));
        }
        let (program, [residual, tangent]) = products_program(integrand, sizes);
        let numbers = |part: &Part| part.numbers(&self.device, self.operator, integrand);
        let made = ProductsOfIntegral { program, numbers: [numbers(&residual)?, numbers(&tangent)?] };
        Ok(of.get_or_init(|| made))
    }

    fn matrix_of(&self, integral: usize) -> Result<&MatrixOfIntegral, OperatorError> {
        let of = &self.matrices[integral];
        if let Some(made) = of.get() {
            return Ok(made);
        }
        let integrand = self.operator.cells[integral];
        let (program, part) = matrix_program(integrand, self.sizes());
        let numbers = part.numbers(&self.device, self.operator, integrand)?;
        let reads_state = part
            .varying
            .iter()
            .any(|&input| matches!(input, Varying::State(_) | Varying::Rate(_)) && part.reads(input));
        Ok(of.get_or_init(|| MatrixOfIntegral { program, numbers, reads_state }))
    }

    /// `struct Cells` of the products.
    fn cells(&self) -> Result<Structure, OperatorError> {
        Ok(Structure(vec![
            self.dofs.address_on(&self.device)?,
            self.geometry.address_on(&self.device)?,
            self.tables[0].address_on(&self.device)?,
            self.tables[1].address_on(&self.device)?,
            self.operator.discrete().space().n_cells() as u64,
        ]))
    }

    /// `struct Functions` of the products.
    fn functions(
        &self,
        state: &CudaState<'_>,
        direction: Option<&Buffer<f64, Cuda>>,
        numbers: [Option<&Buffer<f64, Cuda>>; 2],
    ) -> Result<Structure, OperatorError> {
        let address = |buffer: Option<&Buffer<f64, Cuda>>| match buffer.filter(|buffer| !buffer.is_empty()) {
            Some(buffer) => buffer.address_on(&self.device),
            None => Ok(0),
        };
        Ok(Structure(vec![
            address(Some(state.u))?,
            address(state.rate)?,
            address(direction)?,
            address(numbers[0])?,
            address(numbers[1])?,
            state.time.to_bits(),
            state.shift.to_bits(),
        ]))
    }

    fn check(&self, state: &CudaState<'_>) -> Result<(), OperatorError> {
        self.check_length("u", state.u)?;
        state.rate.map_or(Ok(()), |rate| self.check_length("rate", rate))
    }

    fn check_length(&self, field: &'static str, v: &Buffer<f64, Cuda>) -> Result<(), OperatorError> {
        let (found, expected) = (v.len(), self.operator.discrete().n_unknowns());
        match found == expected {
            true => Ok(()),
            false => Err(OperatorError::Length { field, found, expected }),
        }
    }

    /// Computes the residual r and the product y of the tangent with a direction; returns whether $r \cdot r$ is finite.
    ///
    /// # Shapes
    /// `direction, r, y: [n_unknowns]`
    /// # Cost
    /// Per cell and field $2 n n_q c (1 + d)$ multiplications and additions, the same for each of r and y, one run of both programs
    /// per point.
    /// # Errors
    /// [`OperatorError::Length`]; [`OperatorError::Mismatch`] for cells with more unknowns than the shared memory of a block takes;
    /// facets report values that are not finite; errors of the device.
    pub fn products(
        &self,
        state: &CudaState<'_>,
        direction: &Buffer<f64, Cuda>,
        [r, y]: [&mut Buffer<f64, Cuda>; 2],
    ) -> Result<bool, OperatorError> {
        self.check(state)?;
        [("direction", direction), ("r", &*r), ("y", &*y)]
            .into_iter()
            .try_for_each(|(field, v)| self.check_length(field, v))?;
        let (device, discrete) = (&self.device, self.operator.discrete());
        let (n_dofs, n_cells) = (discrete.space().n_dofs(), discrete.space().n_cells());
        self.begin_with_facets(state, direction, [&mut *r, &mut *y])?;
        let kernel = Kernel::<Products>::new("form_products");
        let sums = Kernel::<Sums>::new("form_sums");
        let mut kept = self.found.borrow_mut();
        let found = match &mut *kept {
            Some(found) => found,
            none => {
                let n = 2 * self.operator.dofs.len() * discrete.form().n_components();
                none.insert(Buffer::zeros(device, n)?)
            }
        };
        for integral in 0..self.operator.cells.len() {
            let ProductsOfIntegral { program, numbers: [of_residual, of_tangent] } =
                self.products_of(integral)?;
            let (team, teams, bytes) = self.sizes().teams();
            let launch = Launch::line(n_cells.div_ceil(teams), (teams * team) as u32).shared(bytes);
            let functions = self.functions(state, Some(direction), [Some(of_residual), Some(of_tangent)])?;
            // SAFETY: degrees of freedom are below those of the vectors, whose lengths were checked; `found` has two numbers for each
            // cell, shape function and component; numbers are those of the text.
            unsafe { device.launch(program, &kernel, launch, (found.write(), self.cells()?, functions)) }?;
            let over = Launch::over(n_dofs, THREADS as u32);
            let (begins, places) = (self.begins.read(), self.places.read());
            let of_cells =
                (r.write(), y.write(), found.read(), begins, places, n_dofs as u64, n_cells as u64);
            // SAFETY: places are below the cells times the shape functions.
            unsafe { device.launch(program, &sums, over, of_cells) }?;
        }
        if let Some((places, zeros)) = &self.constrained {
            self.change(r, (places, zeros), false)?;
            self.change(y, (places, zeros), false)?;
        }
        Ok(device.dot(r, r)?.is_finite())
    }

    /// Puts the contributions of the facets into r and y.
    fn begin_with_facets(
        &self,
        state: &CudaState<'_>,
        direction: &Buffer<f64, Cuda>,
        [r, y]: [&mut Buffer<f64, Cuda>; 2],
    ) -> Result<(), OperatorError> {
        let (device, operator) = (&self.device, self.operator);
        let n = operator.discrete().n_unknowns();
        let is_fixed = |integrand: &Integrand| {
            let residual = integrand.residual();
            let mut inputs = integrand.inputs().iter().enumerate();
            integrand.entries().is_empty()
                && !inputs.any(|(at, input)| {
                    matches!(input, Input::State(_) | Input::Rate(_)) && residual.reads(at)
                })
        };
        let (fixed, others): (Vec<_>, Vec<_>) =
            operator.facets.iter().partition(|(integrand, ..)| is_fixed(integrand));
        device.fill(y, 0.0)?;
        match fixed.is_empty() {
            true => device.fill(r, 0.0)?,
            false => {
                let mut last = self.fixed.borrow_mut();
                if last.as_ref().is_none_or(|(time, _)| *time != state.time) {
                    let mut sum = vec![0.0; n];
                    let at = State { time: state.time, ..State::default() };
                    for (integrand, domain, sites) in fixed {
                        operator.on_facets(integrand, domain, &at).add_residual(sites, &mut sum)?;
                    }
                    *last = Some((state.time, Buffer::from_vec(device, sum)?));
                }
                if let Some((_, sum)) = &*last {
                    device.copy(r, sum)?;
                }
            }
        }
        if others.is_empty() {
            return Ok(());
        }
        let (mut of_r, mut of_y) = (vec![0.0; n], vec![0.0; n]);
        state.on_host(|state| {
            let direction = direction.host_view()?;
            for (integrand, domain, sites) in others {
                let on_facets = operator.on_facets(integrand, domain, state);
                on_facets.add_residual(sites, &mut of_r)?;
                on_facets.add_product(sites, &direction, &mut of_y)?;
            }
            Ok(())
        })?;
        for (to, from) in [(r, of_r), (y, of_y)] {
            device.axpby(to, 1.0, &Buffer::from_vec(device, from)?, 1.0)?;
        }
        Ok(())
    }

    /// Makes a matrix of zeros for a pattern.
    ///
    /// # Errors
    /// [`OperatorError::Mismatch`] for constraints that combine unknowns; errors of the device.
    pub fn matrix(&self, pattern: &Pattern) -> Result<CudaFormMatrix, OperatorError> {
        refuse_combinations(pattern)?;
        let matrix = self.operator.zero_matrix(pattern)?.copy_to(&self.device)?;
        let constrained: Vec<u64> =
            pattern.constrained_diagonal().into_iter().map(|place| place as u64).collect();
        let ones = vec![1.0; constrained.len()];
        Ok(CudaFormMatrix {
            offsets: offsets_on(&self.device, pattern)?,
            constrained: Buffer::from_vec(&self.device, constrained)?,
            ones: Buffer::from_vec(&self.device, ones)?,
            values: Buffer::zeros(&self.device, pattern.n_nonzeros())?,
            pattern: pattern.clone(),
            matrix,
        })
    }

    /// Computes the values of the matrix at a state.
    ///
    /// # Cost
    /// Per pair of shape functions of a cell and per point some $2 d^2 + 3 e$ multiplications for e entries of D′.
    /// # Errors
    /// [`OperatorError::Length`]; [`femtile_form::FormError::IntegrandNotFinite`] with the first point at which the tangent is not
    /// finite; errors of the device.
    pub fn refill(&self, state: &CudaState<'_>, to: &mut CudaFormMatrix) -> Result<(), OperatorError> {
        self.check(state)?;
        let (found, expected) = (to.pattern.offsets.len() - 1, self.operator.discrete().n_unknowns());
        if found != expected {
            return Err(OperatorError::Length { field: "pattern", found, expected });
        }
        let CudaFormMatrix { matrix, pattern, offsets, values, constrained, ones } = to;
        let columns = matrix.columns().address_on(&self.device)?;
        self.device.fill(values, 0.0)?;
        self.add_cells(state, [offsets.address_on(&self.device)?, columns], values)?;
        let mut sums = BTreeMap::new();
        if self.operator.facets.iter().any(|(integrand, ..)| !integrand.entries().is_empty()) {
            state.on_host(|state| {
                self.operator.for_facet_entries(state, &mut |row, column, value| {
                    if let Some(place) = pattern.place(row as usize, column) {
                        *sums.entry(place as u64).or_insert(0.0) += value;
                    }
                })
            })?;
        }
        let (places, entries): (Vec<u64>, Vec<f64>) = sums.into_iter().unzip();
        let added = (Buffer::from_vec(&self.device, places)?, Buffer::from_vec(&self.device, entries)?);
        self.change(values, (&added.0, &added.1), true)?;
        // Cells may have no value where all their unknowns are constrained.
        self.change(values, (constrained, ones), false)?;
        if !self.device.dot(values, values)?.is_finite() {
            // The reference finds the place of a value that is not finite.
            state.on_host(|state| {
                reference::for_entries(self.operator.discrete(), state, &mut |_, _, _| {})
            })?;
            return Err(OperatorError::Mismatch("the tangent is not finite".into()));
        }
        Ok(matrix.combine_values(1.0, values, 0.0)?)
    }

    /// Adds numbers to the entries at some places, or puts them there.
    fn change(
        &self,
        values: &mut Buffer<f64, Cuda>,
        (places, entries): (&Buffer<u64, Cuda>, &Buffer<f64, Cuda>),
        adds: bool,
    ) -> Result<(), OperatorError> {
        let (n, program) = (places.len(), entries_program());
        if n == 0 {
            return Ok(());
        }
        let kernel = Kernel::<Entries>::new("form_entries");
        let launch = Launch::over(n, THREADS as u32);
        let arguments = (values.write(), places.read(), entries.read(), n as u64, u32::from(adds));
        // SAFETY: places are below the length of the array, and each is there once.
        unsafe { self.device.launch(&program, &kernel, launch, arguments) }?;
        Ok(())
    }

    /// Adds the cells to the values of a matrix with offsets and columns at these addresses.
    fn add_cells(
        &self,
        state: &CudaState<'_>,
        [offsets, columns]: [u64; 2],
        values: &mut Buffer<f64, Cuda>,
    ) -> Result<(), OperatorError> {
        let (device, discrete) = (&self.device, self.operator.discrete());
        let (n_dofs, n_cells) = (discrete.space().n_dofs(), discrete.space().n_cells());
        // `struct Rows` of the kernel.
        let rows = Structure(vec![
            self.begins.address_on(device)?,
            self.places.address_on(device)?,
            offsets,
            columns,
            n_dofs as u64,
            u64::from(self.most),
        ]);
        let kernel = Kernel::<Matrix>::new("form_matrix");
        let of_states = Kernel::<Products>::new("form_states");
        for (integral, integrand) in self.operator.cells.iter().enumerate() {
            let MatrixOfIntegral { program, numbers, reads_state } = self.matrix_of(integral)?;
            let sizes = self.sizes();
            let Sizes { n_nodes, n_points, components, dimension } = sizes;
            let states = match reads_state {
                false => None,
                true => {
                    let of = &self.products_of(integral)?.program;
                    let has_rate = reads_rate(integrand);
                    let per_cell = (1 + usize::from(has_rate)) * components * (1 + dimension) * n_points;
                    let mut states = Buffer::zeros(device, n_cells * per_cell)?;
                    let (team, teams, bytes) = sizes.teams();
                    let launch = Launch::line(n_cells.div_ceil(teams), (teams * team) as u32).shared(bytes);
                    let functions = self.functions(state, None, [None; 2])?;
                    // SAFETY: as for products; `states` has the values of each field at the points of each cell.
                    unsafe {
                        device.launch(of, &of_states, launch, (states.write(), self.cells()?, functions))
                    }?;
                    Some((states, has_rate))
                }
            };
            let address = |buffer: &Buffer<f64, Cuda>| match buffer.is_empty() {
                true => Ok(0),
                false => buffer.address_on(device),
            };
            // `struct Cells` of the kernel.
            let cells = Structure(vec![
                self.dofs.address_on(device)?,
                address(&self.geometry)?,
                address(numbers)?,
                address(&self.tables[1])?,
                states.as_ref().map_or(Ok(0), |(states, _)| address(states))?,
                states.as_ref().map_or(0, |(_, has_rate)| 1 + u64::from(*has_rate)),
                state.time.to_bits(),
                state.shift.to_bits(),
            ]);
            let teams = THREADS / team(n_nodes);
            let launch = Launch::line(n_dofs.div_ceil(teams), (teams * team(n_nodes)) as u32);
            // SAFETY: places are those of `dofs`, columns and offsets those of the pattern, which has a row for each component of a
            // degree of freedom; no two teams have a row in common.
            unsafe { device.launch(program, &kernel, launch, (values.write(), cells, rows.clone())) }?;
        }
        Ok(())
    }
}

impl CpuOperator<'_> {
    /// Assembles the tangent at a state with the cells on a GPU; the matrix lies on the host and takes the pattern over.
    ///
    /// # Errors
    /// As [`CpuOperator::refill_on`].
    pub fn assemble_on(
        &self,
        device: &Cuda,
        state: &State<'_>,
        pattern: Pattern,
    ) -> Result<Csr<f64, Cpu>, OperatorError> {
        let mut values = zeroed_vec(pattern.n_nonzeros());
        self.refill_on(device, state, &pattern, &mut values)?;
        self.matrix((&pattern.offsets, pattern.columns), values)
    }

    /// Computes the values of the matrix for a pattern with the cells on a GPU; facets are added on the host.
    ///
    /// The values are those of [`CpuOperator::refill`] to rounding, and have the same bits in every run.
    ///
    /// # Cost
    /// As [`CudaForm::new`] and [`CudaForm::refill`]; brings 8 bytes per entry back.
    /// # Errors
    /// [`OperatorError::Mismatch`] for constraints that combine unknowns; errors of the device; as
    /// [`CpuOperator::assemble`].
    pub fn refill_on(
        &self,
        device: &Cuda,
        state: &State<'_>,
        pattern: &Pattern,
        values: &mut [f64],
    ) -> Result<(), OperatorError> {
        refuse_combinations(pattern)?;
        self.check_refill(state, pattern, values)?;
        let form = CudaForm::new(device, self)?;
        let (offsets, columns) = (offsets_on(device, pattern)?, Buffer::from_host(device, &pattern.columns)?);
        let u = on_device(device, state.u, self.discrete().n_unknowns())?;
        let rate = (!state.rate.is_empty()).then(|| Buffer::from_host(device, state.rate)).transpose()?;
        let State { time, shift, .. } = *state;
        let on_device = CudaState { u: &u, rate: rate.as_ref(), time, shift };
        let mut sums = Buffer::<f64, Cuda>::zeros(device, values.len())?;
        form.add_cells(&on_device, [offsets.address_on(device)?, columns.address_on(device)?], &mut sums)?;
        sums.download(values)?;
        self.finish_refill(state, pattern, values)
    }
}

/// Brings a function to a GPU; an empty vector is zero.
fn on_device(device: &Cuda, u: &[f64], n: usize) -> Result<Buffer<f64, Cuda>, OperatorError> {
    Ok(if u.is_empty() { Buffer::zeros(device, n)? } else { Buffer::from_host(device, u)? })
}

fn offsets_on(device: &Cuda, pattern: &Pattern) -> Result<Buffer<u64, Cuda>, OperatorError> {
    Ok(Buffer::from_vec(device, pattern.offsets.iter().map(|&offset| offset as u64).collect())?)
}

fn refuse_combinations(pattern: &Pattern) -> Result<(), OperatorError> {
    if pattern.combines_unknowns() { Err(combined()) } else { Ok(()) }
}

fn combined() -> OperatorError {
    OperatorError::Mismatch("constraints that combine unknowns: their form is evaluated on a CPU".into())
}
