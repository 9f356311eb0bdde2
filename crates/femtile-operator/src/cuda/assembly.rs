//! Values of the matrix of a form, computed on a GPU.

use std::fmt::Write as _;

use femtile_device::cpu::zeroed_vec;
use femtile_device::cuda::{Kernel, Launch, Program, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cpu, Cuda, parallel};
use femtile_form::Integrand;
use femtile_space::Element;
use femtile_sparse::Csr;

use super::numbers::PointText;
use crate::cpu::{CpuOperator, LANES, Pattern};
use crate::discrete_form::State;
use crate::error::OperatorError;
use crate::sites::cell_rule;

static ASSEMBLY: Program = Program { name: "form_matrix", source: include_str!("assembly.cu"), headers: &[] };

/// Threads of a block, and the most of a team.
const THREADS: usize = 128;

type Matrix = (Write<f64>, Structure, Structure);

/// Returns the threads of a team: a power of two for few shape functions.
fn team(n_nodes: usize) -> usize {
    n_nodes.next_power_of_two().min(THREADS)
}

/// Returns the program that adds the integral of an integrand over cells with this element.
pub(super) fn program(integrand: &Integrand, components: usize, element: &Element) -> Specialisation {
    let text = PointText::of(integrand, integrand.derivative_at_points());
    specialisation(&text, integrand, components, [element.n_dofs(), cell_rule(element).n_q()])
}

fn specialisation(
    text: &PointText,
    integrand: &Integrand,
    components: usize,
    [n_nodes, n_points]: [usize; 2],
) -> Specialisation {
    let (d, entries) = (integrand.dimension(), integrand.entries());
    let [of_cell, at_point] = text.n_numbers();
    let mut header = text.text("derivative");
    let _ = write!(
        header,
        "const u32 DIMENSION = {d}, COMPONENTS = {components}, ENTRIES = {}, OF_CELL = {of_cell}, AT_POINT = {at_point};\n\
         __device__ inline void add_block(double (&block)[COMPONENTS][COMPONENTS], const double* entries, \
         const double* test, const double* trial) {{\n",
        entries.len().max(1),
    );
    for (at, [row, column]) in entries.iter().enumerate() {
        let [of_row, of_column] = [row, column].map(|slot| (slot / (1 + d), slot % (1 + d)));
        let _ = writeln!(
            header,
            "    block[{}][{}] += test[{}] * entries[{at}] * trial[{}];",
            of_row.0, of_column.0, of_row.1, of_column.1
        );
    }
    header.push_str("}\n");
    ASSEMBLY
        .of::<f64>()
        .define("FEMTILE_NODES", n_nodes)
        .define("FEMTILE_POINTS", n_points)
        .define("FEMTILE_TEAM", team(n_nodes))
        .define("FEMTILE_TEAMS", THREADS / team(n_nodes))
        .header("derivative.cuh", header)
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
        self.matrix(pattern, values)
    }

    /// Computes the values of the matrix for a pattern with the cells on a GPU; facets are added on the host.
    ///
    /// The values are those of [`CpuOperator::refill`] to rounding, and have the same bits in every run.
    ///
    /// # Cost
    /// Per pair of shape functions of a cell and per point some $2 d^2 + 3 e$ multiplications for e entries of D′; brings
    /// $8(d^2 + 1)$ bytes per point to the device and 8 per entry back.
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
        if pattern.combines_unknowns() {
            let message = "constraints that combine unknowns: their matrix is assembled on a CPU";
            return Err(OperatorError::Mismatch(message.into()));
        }
        self.check_refill(state, pattern, values)?;
        self.cpu.install(|| self.add_cells_on(device, state, pattern, values))?;
        self.finish_refill(state, pattern, values)
    }

    fn add_cells_on(
        &self,
        device: &Cuda,
        state: &State<'_>,
        pattern: &Pattern,
        values: &mut [f64],
    ) -> Result<(), OperatorError> {
        let (space, basis) = (self.discrete().space(), &self.basis);
        let (n_cells, n_q, n_dofs) = (space.n_cells(), basis.n_q, space.n_dofs());
        let n_geometry = (basis.dimension * basis.dimension + 1) * n_q;
        let mut geometry = zeroed_vec::<f64>(n_cells * n_geometry);
        parallel::for_chunks_mut(&mut geometry, n_geometry, |begin, to| {
            let position = begin / n_geometry;
            to.copy_from_slice(&self.geometry.of_cell(position / LANES, position % LANES));
        });
        let offsets: Vec<u64> = pattern.offsets.iter().map(|&offset| offset as u64).collect();
        let geometry = Buffer::from_vec(device, geometry)?;
        let tables = Buffer::from_host(device, &basis.tables)?;
        let dofs = Buffer::from_host(device, &self.dofs)?;
        let begins = Buffer::from_host(device, &self.places.offsets)?;
        let places = Buffer::from_host(device, &self.places.places)?;
        let offsets = Buffer::from_vec(device, offsets)?;
        let columns = Buffer::from_host(device, &pattern.columns)?;
        let mut sums = Buffer::<f64, Cuda>::zeros(device, values.len())?;
        let most = self.places.offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        let address = |buffer: &Buffer<f64, Cuda>| buffer.address_on(device);
        // `struct Rows` of the kernel.
        let rows = Structure(vec![
            begins.address_on(device)?,
            places.address_on(device)?,
            offsets.address_on(device)?,
            columns.address_on(device)?,
            n_dofs as u64,
            u64::from(most),
        ]);
        let teams = THREADS / team(basis.n);
        let kernel = Kernel::<Matrix>::new("form_matrix");
        for integrand in &self.cells {
            let text = PointText::of(integrand, integrand.derivative_at_points());
            let found = text.evaluate(self, integrand, state);
            let [of_cell, at_point] = text.n_numbers();
            let per_cell = of_cell + at_point * n_q;
            let mut numbers = zeroed_vec::<f64>(n_cells * per_cell);
            if per_cell > 0 {
                parallel::for_chunks_mut(&mut numbers, per_cell, |begin, to| {
                    let (own, at_points) = to.split_at_mut(of_cell);
                    found.write(begin / per_cell, own, at_points);
                });
            }
            let numbers = Buffer::from_vec(device, numbers)?;
            // `struct Cells` of the kernel.
            let cells = Structure(vec![
                dofs.address_on(device)?,
                address(&geometry)?,
                if numbers.is_empty() { 0 } else { address(&numbers)? },
                address(&tables)?,
            ]);
            let program =
                specialisation(&text, integrand, self.discrete().form().n_components(), [basis.n, n_q]);
            let launch = Launch::line(n_dofs.div_ceil(teams), (teams * team(basis.n)) as u32);
            // SAFETY: places are those of `dofs`, columns and offsets those of the pattern, which has a row for each component of a
            // degree of freedom; no two teams have a row in common.
            unsafe { device.launch(&program, &kernel, launch, (sums.write(), cells, rows.clone())) }?;
        }
        Ok(sums.download(values)?)
    }
}
