//! Assembly of the tangent as a sparse matrix.

use std::ops::Range;

use femtile_device::cpu::zeroed_vec;
use femtile_device::{Cpu, parallel};
use femtile_form::Integrand;
use femtile_space::LinearConstraints;
use femtile_sparse::Csr;
use femtile_sparse::csr::HostOffsets;

use super::CpuOperator;
use super::basis::{Basis, LANES, Lanes, add_product};
use super::cells::{CellScratch, Job, Product};
use super::geometry::slots;
use super::linear::LinearPair;
use crate::discrete_form::State;
use crate::error::OperatorError;

/// Numbers of cell matrices that are kept at a time for each thread: they stay in its cache.
const CACHED: usize = 1 << 17;

/// Numbers of cell matrices up to which each thread has a batch, also beyond the cache.
const ENTRIES: usize = 1 << 23;

/// Rows that a thread fills at a time.
const ROWS: usize = 1 << 10;

/// Unknowns of a cell up to which the places of its matrix are kept: of more, the matrix takes longer than the search for its places.
const MOST_PLACED: usize = 16;

/// The place of entries that are nowhere.
const NOWHERE: u32 = u32::MAX;

/// The sparsity pattern of a discrete form with constraints.
///
/// With constraints $u = C w + g$ the matrix is $C^\mathsf{T} A C$, with one on the diagonal of constrained unknowns, whose
/// rows and columns are else empty.
#[derive(Debug, Clone)]
pub struct Pattern {
    constraints: LinearConstraints,
    pub(crate) offsets: Vec<usize>,
    pub(crate) columns: Vec<u32>,
    /// The place of each entry of the cell matrices, if they are kept: `[n_cells][n c][n c]`.
    places: Option<Vec<u32>>,
}

impl Pattern {
    /// Returns the number of entries.
    pub fn n_nonzeros(&self) -> usize {
        self.columns.len()
    }

    /// Returns the constraints.
    pub fn constraints(&self) -> &LinearConstraints {
        &self.constraints
    }

    /// Calls a function for each unconstrained unknown that an unknown stands for, with its factor.
    fn expand(&self, unknown: u32, found: &mut dyn FnMut(u32, f64)) {
        if !self.constraints.contains(unknown) {
            return found(unknown, 1.0);
        }
        let terms = self.constraints.terms(unknown).unwrap_or_default();
        terms.iter().for_each(|&(other, factor)| found(other, factor));
    }

    /// Returns whether a constrained unknown depends on others.
    pub(crate) fn combines_unknowns(&self) -> bool {
        self.constraints.combines_dofs()
    }

    /// Returns the places of the diagonal of constrained unknowns.
    pub(crate) fn constrained_diagonal(&self) -> Vec<usize> {
        let constrained = self.constraints.dofs().iter();
        constrained.filter_map(|&unknown| self.place(unknown as usize, unknown)).collect()
    }

    /// Splits the values into ranges of rows, one for each thread, with nearly equal numbers of the given rows, counted with repetition.
    fn parts<'v, I: Iterator<Item = u32>>(
        &self,
        rows: impl Fn() -> I,
        values: &'v mut [f64],
    ) -> Vec<(Range<usize>, &'v mut [f64])> {
        let (n_threads, n_rows) = (parallel::n_threads(), self.offsets.len() - 1);
        let mut rows: Vec<u32> = if n_threads == 1 { Vec::new() } else { rows().collect() };
        parallel::sort(&mut rows);
        let bound = |thread: usize| match thread {
            0 => 0,
            _ if thread == n_threads => n_rows,
            _ => rows.get(thread * rows.len() / n_threads).map_or(n_rows, |row| *row as usize),
        };
        let mut rest = values;
        let part = |thread: usize| {
            let rows = bound(thread)..bound(thread + 1);
            let n_own = self.offsets[rows.end] - self.offsets[rows.start];
            let (own, others) = std::mem::take(&mut rest).split_at_mut(n_own);
            rest = others;
            (rows, own)
        };
        (0..n_threads).map(part).collect()
    }

    pub(crate) fn place(&self, row: usize, column: u32) -> Option<usize> {
        let begin = self.offsets[row];
        self.columns[begin..self.offsets[row + 1]].binary_search(&column).ok().map(|place| begin + place)
    }
}

/// An unconstrained unknown that an unknown of a cell stands for.
struct LocalUnknown {
    unknown: u32,
    /// The row of the cell matrix.
    local: usize,
    factor: f64,
}

/// Unknowns that are coupled: those of cells, and of the two cells of an interior facet.
struct Coupled<'o, 'a> {
    operator: &'o CpuOperator<'a>,
    constraints: &'o LinearConstraints,
    /// Unknowns that depend on each unknown: pairs, sorted.
    dependents: Vec<(u32, u32)>,
    /// Degree of freedom and interior facet: pairs, sorted; and the degrees of freedom of those facets.
    on_facets: Vec<(u32, u32)>,
    facets: Vec<Vec<u32>>,
    couples_components: bool,
}

impl Coupled<'_, '_> {
    /// Appends the rows of a degree of freedom, one for each component.
    fn add_rows(&self, dof: usize, rows: &mut Rows) {
        let n_components = self.operator.discrete.form().n_components();
        let mut alike = None;
        for unknown in (0..n_components).map(|component| (dof * n_components + component) as u32) {
            let begin = rows.columns.len();
            if self.constraints.contains(unknown) {
                rows.columns.push(unknown);
            } else if self.dependents.is_empty() {
                self.add_columns(unknown, alike.get_or_insert_with(|| self.coupled_dofs(&[unknown])), rows);
            } else {
                self.add_columns(unknown, &self.coupled_dofs(&self.represented(unknown)), rows);
            }
            rows.lengths.push(rows.columns.len() - begin);
        }
    }

    /// Returns an unknown with those that depend on it.
    fn represented(&self, unknown: u32) -> Vec<u32> {
        let first = self.dependents.partition_point(|(of, _)| *of < unknown);
        let dependents = self.dependents[first..].iter().take_while(|(of, _)| *of == unknown);
        dependents.map(|(_, other)| *other).chain([unknown]).collect()
    }

    /// Returns the degrees of freedom of the cells and interior facets that have some unknowns, ascending.
    fn coupled_dofs(&self, unknowns: &[u32]) -> Vec<u32> {
        let n = self.operator.basis.n;
        let mut dofs = Vec::new();
        for unknown in unknowns {
            let dof = *unknown as usize / self.operator.discrete.form().n_components();
            for &place in self.operator.places.of(dof) {
                let cell = place as usize / n;
                dofs.extend_from_slice(&self.operator.dofs[cell * n..(cell + 1) * n]);
            }
            let first = self.on_facets.partition_point(|(of, _)| (*of as usize) < dof);
            for (_, facet) in self.on_facets[first..].iter().take_while(|(of, _)| *of as usize == dof) {
                dofs.extend_from_slice(&self.facets[*facet as usize]);
            }
        }
        dofs.sort_unstable();
        dofs.dedup();
        dofs
    }

    /// Appends the columns of the row of an unknown that is coupled with some degrees of freedom, ascending.
    fn add_columns(&self, row: u32, dofs: &[u32], rows: &mut Rows) {
        let n = self.operator.discrete.form().n_components() as u32;
        let components = if self.couples_components { 0..n } else { row % n..row % n + 1 };
        let of_dof = |dof: u32| components.clone().map(move |component| dof * n + component);
        if self.dependents.is_empty() {
            // A constrained unknown is the combination of none.
            let is_free = |unknown: &u32| !self.constraints.contains(*unknown);
            return rows.columns.extend(dofs.iter().copied().flat_map(of_dof).filter(is_free));
        }
        let mut columns = Vec::with_capacity(dofs.len() * components.len());
        for unknown in dofs.iter().copied().flat_map(of_dof) {
            match self.constraints.terms(unknown) {
                None => columns.push(unknown),
                Some(terms) => columns.extend(terms.iter().map(|(other, _)| *other)),
            }
        }
        columns.sort_unstable();
        columns.dedup();
        rows.columns.extend(columns);
    }
}

/// Some rows of a pattern, one after another.
#[derive(Default)]
struct Rows {
    lengths: Vec<usize>,
    columns: Vec<u32>,
}

impl CpuOperator<'_> {
    /// Returns the pattern of the matrix with constraints of the unknowns.
    ///
    /// # Errors
    /// [`OperatorError::Mismatch`] for constraints of another number of unknowns.
    pub fn pattern(&self, constraints: &LinearConstraints) -> Result<Pattern, OperatorError> {
        let n_rows = self.discrete.n_unknowns();
        if constraints.n_dofs() != n_rows {
            let message = format!("constraints of {} unknowns, not {n_rows}", constraints.n_dofs());
            return Err(OperatorError::Mismatch(message));
        }
        let mut dependents: Vec<(u32, u32)> = Vec::new();
        for &dof in constraints.dofs() {
            let terms = constraints.terms(dof).unwrap_or_default();
            dependents.extend(terms.iter().map(|&(other, _)| (other, dof)));
        }
        dependents.sort_unstable();
        let sites = self.facets.iter().flat_map(|(_, _, sites)| sites).filter(|site| site.sides.len() == 2);
        let facets: Vec<Vec<u32>> = sites
            .map(|site| site.sides.iter().flat_map(|side| side.dofs.iter().copied()).collect())
            .collect();
        let numbered = facets.iter().enumerate();
        let mut on_facets: Vec<(u32, u32)> =
            numbered.flat_map(|(facet, dofs)| dofs.iter().map(move |&dof| (dof, facet as u32))).collect();
        on_facets.sort_unstable();
        let integrals = self.discrete.form().integrals().iter();
        let couples_components = !dependents.is_empty()
            || integrals.into_iter().any(|integral| integral.integrand.class().couples_components);
        let coupled =
            Coupled { operator: self, constraints, dependents, on_facets, facets, couples_components };
        let n_dofs = self.discrete.space().n_dofs();
        let of_chunk = |chunk: usize| {
            let mut rows = Rows::default();
            (chunk * ROWS..n_dofs.min((chunk + 1) * ROWS)).for_each(|dof| coupled.add_rows(dof, &mut rows));
            rows
        };
        let (offsets, columns) = self.cpu.install(|| {
            let chunks = parallel::map(n_dofs.div_ceil(ROWS), 1, of_chunk);
            let mut offsets = Vec::with_capacity(n_rows + 1);
            offsets.push(0);
            for length in chunks.iter().flat_map(|rows| &rows.lengths) {
                offsets.push(offsets[offsets.len() - 1] + length);
            }
            let mut columns = zeroed_vec(offsets[n_rows]);
            let mut rest = &mut columns[..];
            let mut parts = Vec::with_capacity(chunks.len());
            for rows in chunks {
                let (own, others) = rest.split_at_mut(rows.columns.len());
                rest = others;
                parts.push((own, rows.columns));
            }
            parallel::for_each_item(parts, 1, |(to, from)| to.copy_from_slice(&from));
            (offsets, columns)
        });
        Ok(Pattern { constraints: constraints.clone(), offsets, columns, places: None })
    }

    /// Assembles the tangent at a state; the matrix takes the pattern over.
    ///
    /// # Cost
    /// Per cell $O(n_q n c^2 (1 + d)^2 + n^2 n_q c^2 (1 + d))$ operations for n shape functions and c components.
    /// # Errors
    /// [`OperatorError::Length`]; [`femtile_form::FormError::IntegrandNotFinite`] with the first point at which the tangent
    /// is not finite.
    pub fn assemble(&self, state: &State<'_>, pattern: Pattern) -> Result<Csr<f64, Cpu>, OperatorError> {
        let mut values = zeroed_vec(pattern.n_nonzeros());
        self.refill(state, &pattern, &mut values)?;
        self.matrix((&pattern.offsets, pattern.columns), values)
    }

    /// Returns a matrix of zeros with a pattern.
    ///
    /// # Errors
    /// Errors of the matrix.
    pub fn zero_matrix(&self, pattern: &Pattern) -> Result<Csr<f64, Cpu>, OperatorError> {
        let values = zeroed_vec(pattern.n_nonzeros());
        self.matrix((&pattern.offsets, pattern.columns.clone()), values)
    }

    /// Returns the matrix of offsets and columns with values.
    pub(crate) fn matrix(
        &self,
        (offsets, columns): (&[usize], Vec<u32>),
        values: Vec<f64>,
    ) -> Result<Csr<f64, Cpu>, OperatorError> {
        let narrow: Option<Vec<u32>> = offsets.iter().map(|&at| u32::try_from(at).ok()).collect();
        let offsets = match narrow {
            Some(offsets) => HostOffsets::Narrow(offsets),
            None => HostOffsets::Wide(offsets.iter().map(|&at| at as u64).collect()),
        };
        Ok(Csr::from_parts(&self.cpu, self.discrete.n_unknowns(), offsets, columns, values)?)
    }

    /// Keeps the place of each entry of the cell matrices in a pattern, so that refills need no search; not where cells have many
    /// unknowns or constraints combine unknowns.
    ///
    /// # Cost
    /// $4 n^2 c^2$ bytes per cell for n shape functions and c components.
    pub fn keep_places(&self, pattern: &mut Pattern) {
        let size = self.basis.n * self.discrete.form().n_components();
        let is_small = u32::try_from(pattern.n_nonzeros()).is_ok_and(|n| n < NOWHERE);
        if size > MOST_PLACED || !is_small || pattern.combines_unknowns() {
            return;
        }
        let mut places = zeroed_vec(self.discrete.space().n_cells() * size * size);
        self.cpu.install(|| {
            parallel::for_chunks_mut(&mut places, LANES * size * size, |begin, places| {
                for (i, places) in places.chunks_exact_mut(size * size).enumerate() {
                    self.find_cell_places(begin / (size * size) + i, pattern, places);
                }
            });
        });
        pattern.places = Some(places);
    }

    /// Finds the places of the matrix of a cell, in a pattern whose constraints combine no unknowns.
    fn find_cell_places(&self, cell: usize, pattern: &Pattern, places: &mut [u32]) {
        let size = self.basis.n * self.discrete.form().n_components();
        places.fill(NOWHERE);
        let unknowns = self.expanded(cell, pattern);
        let mut own = Vec::new();
        for row in &unknowns {
            let range = pattern.offsets[row.unknown as usize]..pattern.offsets[row.unknown as usize + 1];
            find_places(&unknowns, &pattern.columns[range.clone()], &mut own);
            for (column, &place) in unknowns.iter().zip(&own) {
                if place < range.len() {
                    places[row.local * size + column.local] = (range.start + place) as u32;
                }
            }
        }
    }

    /// Computes the values of the matrix for a pattern.
    ///
    /// # Errors
    /// As [`Self::assemble`].
    pub fn refill(
        &self,
        state: &State<'_>,
        pattern: &Pattern,
        values: &mut [f64],
    ) -> Result<(), OperatorError> {
        self.check_refill(state, pattern, values)?;
        values.fill(0.0);
        for integrand in &self.cells {
            self.cpu.install(|| self.add_cells(integrand, state, pattern, values));
        }
        self.finish_refill(state, pattern, values)
    }

    /// Fails unless a state, the pattern and the values fit.
    pub(crate) fn check_refill(
        &self,
        state: &State<'_>,
        pattern: &Pattern,
        values: &[f64],
    ) -> Result<(), OperatorError> {
        self.discrete.check_state(state)?;
        let (found, expected) = (pattern.offsets.len() - 1, self.discrete.n_unknowns());
        if found != expected {
            return Err(OperatorError::Length { field: "pattern", found, expected });
        }
        if let Some(places) = &pattern.places {
            let size = self.basis.n * self.discrete.form().n_components();
            let (found, expected) = (places.len(), self.discrete.space().n_cells() * size * size);
            if found != expected {
                return Err(OperatorError::Length { field: "places of the pattern", found, expected });
            }
        }
        let (found, expected) = (values.len(), pattern.n_nonzeros());
        match found == expected {
            true => Ok(()),
            false => Err(OperatorError::Length { field: "values", found, expected }),
        }
    }

    /// Adds facets to the values of the cells and sets the diagonal of constrained unknowns.
    pub(crate) fn finish_refill(
        &self,
        state: &State<'_>,
        pattern: &Pattern,
        values: &mut [f64],
    ) -> Result<(), OperatorError> {
        self.for_facet_entries(state, &mut |row, column, value| {
            add_entry(pattern, values, row, column, value);
        })?;
        // The reference finds the place of a value that is not finite.
        if !self.cpu.install(|| parallel::all(values.len(), parallel::CHEAP, |at| values[at].is_finite())) {
            crate::reference::for_entries(&self.discrete, state, &mut |_, _, _| {})?;
        }
        pattern.constrained_diagonal().into_iter().for_each(|place| values[place] = 1.0);
        Ok(())
    }

    /// Calls a function with row, column and value of each contribution of the facets to the tangent.
    pub(crate) fn for_facet_entries(
        &self,
        state: &State<'_>,
        found: &mut dyn FnMut(u32, u32, f64),
    ) -> Result<(), OperatorError> {
        self.facets.iter().try_for_each(|(integrand, domain, sites)| {
            self.on_facets(integrand, domain, state).for_entries(sites, found)
        })
    }

    /// Computes the diagonal of the tangent without constraints.
    ///
    /// # Shapes
    /// `diagonal: [n_unknowns]`
    /// # Errors
    /// As [`Self::assemble`].
    pub fn diagonal(&self, state: &State<'_>, diagonal: &mut [f64]) -> Result<(), OperatorError> {
        self.discrete.check_state(state)?;
        self.discrete.check_length("diagonal", diagonal, false)?;
        diagonal.fill(0.0);
        let (n, n_components) = (self.basis.n, self.discrete.form().n_components());
        for integrand in &self.cells {
            self.for_cell_matrices(integrand, state, |first, matrices| {
                let size = n * n_components;
                for (i, matrix) in matrices.chunks_exact(size * size).enumerate() {
                    for local in 0..size {
                        diagonal[self.unknown(first + i, local)] += matrix[local * size + local];
                    }
                }
            });
        }
        for (integrand, domain, sites) in &self.facets {
            self.on_facets(integrand, domain, state).for_entries(sites, &mut |row, column, value| {
                if row == column {
                    diagonal[row as usize] += value;
                }
            })?;
        }
        Ok(())
    }

    /// Returns the unknown of a row of a cell matrix, whose rows run over shape functions, then components.
    fn unknown(&self, cell: usize, local: usize) -> usize {
        let n = self.basis.n;
        self.dofs[cell * n + local % n] as usize * self.discrete.form().n_components() + local / n
    }

    fn add_cells(&self, integrand: &Integrand, state: &State<'_>, pattern: &Pattern, values: &mut [f64]) {
        self.for_cell_matrices(integrand, state, |first, matrices| match &pattern.places {
            Some(places) => self.add_at_places((first, matrices), (pattern, places), values),
            None => self.add_by_search(first, matrices, pattern, values),
        });
    }

    /// Adds the matrices of cells from the first one on at the places that a pattern keeps.
    fn add_at_places(
        &self,
        (first, matrices): (usize, &[f64]),
        (pattern, places): (&Pattern, &[u32]),
        values: &mut [f64],
    ) {
        let size = self.basis.n * self.discrete.form().n_components();
        let (entries, n_cells) = (size * size, matrices.len() / (size * size));
        let places = &places[first * entries..][..matrices.len()];
        let row = |cell: usize, local: usize| self.unknown(first + cell, local);
        let all = || (0..n_cells).flat_map(|cell| (0..size).map(move |local| row(cell, local) as u32));
        parallel::for_each_item(pattern.parts(all, values), 1, |(rows, values)| {
            let begin = pattern.offsets[rows.start];
            for (cell, (matrix, places)) in
                matrices.chunks_exact(entries).zip(places.chunks_exact(entries)).enumerate()
            {
                let of_rows = matrix.chunks_exact(size).zip(places.chunks_exact(size)).enumerate();
                for (_, (entries, places)) in of_rows.filter(|(local, _)| rows.contains(&row(cell, *local))) {
                    for (entry, &place) in entries.iter().zip(places) {
                        if let Some(value) = values.get_mut((place as usize).wrapping_sub(begin)) {
                            *value += entry;
                        }
                    }
                }
            }
        });
    }

    /// Adds the matrices of cells from the first one on, with constraints that may combine unknowns.
    fn add_by_search(&self, first: usize, matrices: &[f64], pattern: &Pattern, values: &mut [f64]) {
        let size = self.basis.n * self.discrete.form().n_components();
        let n_cells = matrices.len() / (size * size);
        let expanded = parallel::map(n_cells, LANES, |i| self.expanded(first + i, pattern));
        let all = || expanded.iter().flatten().map(|row| row.unknown);
        parallel::for_each_item(pattern.parts(all, values), 1, |(rows, values)| {
            let mut places = Vec::new();
            for (unknowns, matrix) in expanded.iter().zip(matrices.chunks_exact(size * size)) {
                let mut last: &[u32] = &[];
                for row in unknowns.iter().filter(|row| rows.contains(&(row.unknown as usize))) {
                    let range =
                        pattern.offsets[row.unknown as usize]..pattern.offsets[row.unknown as usize + 1];
                    let columns = &pattern.columns[range.clone()];
                    let begin = range.start - pattern.offsets[rows.start];
                    let entries = &matrix[row.local * size..(row.local + 1) * size];
                    // Rows of one degree of freedom have the same columns.
                    if columns != last {
                        find_places(unknowns, columns, &mut places);
                        last = columns;
                    }
                    let values = &mut values[begin..begin + columns.len()];
                    for (column, &place) in unknowns.iter().zip(&places) {
                        if let Some(value) = values.get_mut(place) {
                            *value += row.factor * column.factor * entries[column.local];
                        }
                    }
                }
            }
        });
    }

    /// Returns the unconstrained unknowns that the unknowns of a cell stand for, ascending.
    fn expanded(&self, cell: usize, pattern: &Pattern) -> Vec<LocalUnknown> {
        let mut found = Vec::new();
        for local in 0..self.basis.n * self.discrete.form().n_components() {
            let unknown = self.unknown(cell, local) as u32;
            pattern
                .expand(unknown, &mut |unknown, factor| found.push(LocalUnknown { unknown, local, factor }));
        }
        found.sort_unstable_by_key(|found: &LocalUnknown| (found.unknown, found.local));
        found
    }

    /// Computes the matrices of all cells, by groups: calls a function with the first cell of a group and its matrices,
    /// `[n_cells][n c][n c]` with rows by components, then shape functions.
    fn for_cell_matrices(
        &self,
        integrand: &Integrand,
        state: &State<'_>,
        mut found: impl FnMut(usize, &[f64]),
    ) {
        let size = self.basis.n * self.discrete.form().n_components();
        let n_cells = self.discrete.space().n_cells();
        let (n_threads, of_batch) = (parallel::n_threads(), size * size * LANES);
        let batches = (CACHED * n_threads / of_batch).max((ENTRIES / of_batch).clamp(1, n_threads));
        let per_group = LANES * batches.min(n_cells.div_ceil(LANES).max(1));
        let mut matrices = vec![0.0; per_group.min(n_cells) * size * size];
        let job = Job::new(self, integrand, Product::Derivative, state, &[]);
        for first in (0..n_cells).step_by(per_group) {
            let matrices = &mut matrices[..per_group.min(n_cells - first) * size * size];
            let items: Vec<(usize, &mut [f64])> =
                matrices.chunks_mut(LANES * size * size).enumerate().collect();
            parallel::for_each_item_with(items, 1, MatrixScratch::default, |scratch, (batch, matrices)| {
                let mut lanes = std::mem::take(&mut scratch.lanes);
                lanes.resize(size * size, [0.0; LANES]);
                job.matrix(first / LANES + batch, &mut lanes, scratch);
                for (chunk, lanes) in lanes.chunks(LANES).enumerate() {
                    for (lane, matrix) in matrices.chunks_exact_mut(size * size).enumerate() {
                        let entries = matrix[chunk * LANES..].iter_mut().zip(lanes);
                        entries.for_each(|(entry, lanes)| *entry = lanes[lane]);
                    }
                }
                scratch.lanes = lanes;
            });
            found(first, matrices);
        }
    }
}

/// Finds the places of unknowns among columns, both ascending; those that are missing have the number of columns.
fn find_places(unknowns: &[LocalUnknown], columns: &[u32], places: &mut Vec<usize>) {
    places.clear();
    let mut at = 0;
    for of in unknowns {
        // Unknowns of one degree of freedom follow each other.
        at += match columns.get(at + 1) {
            Some(&next) if next == of.unknown => 1,
            _ => columns[at..].partition_point(|&column| column < of.unknown),
        };
        places.push(if columns.get(at) == Some(&of.unknown) { at } else { columns.len() });
    }
}

fn add_entry(pattern: &Pattern, values: &mut [f64], row: u32, column: u32, value: f64) {
    pattern.expand(row, &mut |row, of_row| {
        pattern.expand(column, &mut |column, of_column| {
            if let Some(place) = pattern.place(row as usize, column) {
                values[place] += of_row * of_column * value;
            }
        });
    });
}

/// Workspace of cell matrices.
#[derive(Default)]
struct MatrixScratch {
    cells: CellScratch,
    /// Matrices of a batch, by lanes.
    lanes: Vec<Lanes>,
    /// Entries of D' at the points: `[n_entries][n_q]`.
    entries: Vec<Lanes>,
    /// D' of a pair of components on the axes of the reference cell: `[1 + d][1 + d][n_q]`.
    block: Vec<Lanes>,
    /// Its product with the trial functions: `[n_rows][n_q][n]`.
    products: Vec<Lanes>,
}

impl Job<'_, '_> {
    /// Computes $K = B^\mathsf{T} D' B$ of a batch of cells.
    ///
    /// # Shapes
    /// `matrix: [c][n][c][n]`
    fn matrix(&self, batch: usize, matrix: &mut [Lanes], scratch: &mut MatrixScratch) {
        let basis = &self.operator.basis;
        let (n, n_q, d) = (basis.n, basis.n_q, basis.dimension);
        let n_components = self.operator.discrete.form().n_components();
        let MatrixScratch { cells, entries, block, products, .. } = scratch;
        let (list, is_symmetric) = (self.integrand.entries(), self.integrand.class().symmetric);
        entries.resize(list.len() * n_q, [0.0; LANES]);
        self.run_program(batch, entries, cells);
        block.resize((1 + d) * (1 + d) * n_q, [0.0; LANES]);
        products.resize(n_q * (1 + d) * n, [0.0; LANES]);
        for test in 0..n_components {
            for trial in if is_symmetric { test } else { 0 }..n_components {
                if !basis.is_tensor() && n == 1 + basis.of_cells {
                    let of = LinearPair { list, entries, pair: [test, trial], is_symmetric };
                    match (d, n) {
                        (2, _) => self.matrix_of_linear::<2, 3>(batch, of, matrix),
                        (_, 3) => self.matrix_of_linear::<3, 3>(batch, of, matrix),
                        _ => self.matrix_of_linear::<3, 4>(batch, of, matrix),
                    }
                    continue;
                }
                block.fill([0.0; LANES]);
                // Whether the value and the derivatives of the test function meet those of the trial function.
                let mut has = [[false; 2]; 2];
                for (entry, [row, column]) in list.iter().enumerate() {
                    if (row / (1 + d), column / (1 + d)) == (test, trial) {
                        let (row, column) = (row % (1 + d), column % (1 + d));
                        block[(row * (1 + d) + column) * n_q..][..n_q]
                            .copy_from_slice(&entries[entry * n_q..(entry + 1) * n_q]);
                        has[row.min(1)][column.min(1)] = true;
                    }
                }
                let at = |i: usize, j: usize| ((test * n + i) * n_components + trial) * n + j;
                let mirrored = |i: usize, j: usize| ((trial * n + j) * n_components + test) * n + i;
                if has == [[false; 2]; 2] {
                    for i in 0..n {
                        (0..n).for_each(|j| matrix[at(i, j)] = [0.0; LANES]);
                        if is_symmetric {
                            (0..n).for_each(|j| matrix[mirrored(i, j)] = [0.0; LANES]);
                        }
                    }
                    continue;
                }
                let geometry = self.operator.geometry.batch(batch);
                self.operator.cpu.simd().vectorize(
                    #[inline(always)]
                    || {
                        let rows = match d {
                            2 => {
                                geometry.map_block_to_reference::<2>(block, has);
                                multiply_trial::<2>(block, has, basis, products)
                            }
                            _ => {
                                geometry.map_block_to_reference::<3>(block, has);
                                multiply_trial::<3>(block, has, basis, products)
                            }
                        };
                        let tables = &basis.tables[rows.start * n_q * n..rows.end * n_q * n];
                        let is_half = is_symmetric && test == trial;
                        multiply_test(tables, products, n, is_half, |i, j, value| {
                            matrix[at(i, j)] = value;
                            if is_symmetric {
                                matrix[mirrored(i, j)] = value;
                            }
                        });
                    },
                );
            }
        }
    }
}

/// Computes $P_{r q j} = \sum_s D'_{r s}(q) B_{s q j}$, the products of D' with the slots of each trial function, and returns
/// the range of rows r.
///
/// # Shapes
/// `block: [1 + d][1 + d][n_q]`, B: `[1 + d][n_q][n]`, `products: [n_rows][n_q][n]`
#[inline(always)]
fn multiply_trial<const D: usize>(
    block: &[Lanes],
    has: [[bool; 2]; 2],
    basis: &Basis,
    products: &mut [Lanes],
) -> Range<usize> {
    let (n, n_q) = (basis.n, basis.n_q);
    let rows = slots::<D>(has.map(|[value, derivatives]| value || derivatives));
    for (row, products) in rows.clone().zip(products.chunks_exact_mut(n_q * n)) {
        let columns = slots::<D>(has[row.min(1)]);
        for (q, products) in products.chunks_exact_mut(n).enumerate() {
            products.fill([0.0; LANES]);
            for column in columns.clone() {
                let entry = block[(row * (1 + D) + column) * n_q + q];
                let shapes = &basis.tables[(column * n_q + q) * n..][..n];
                for (product, shape) in products.iter_mut().zip(shapes) {
                    add_product(product, *shape, &entry);
                }
            }
        }
    }
    rows
}

/// Rows and columns of a cell matrix whose sums are in registers together: every element has as many shape functions.
const TILE: [usize; 2] = [3, 2];

/// Computes $K_{ij} = \sum_k B_{k i} P_{k j}$ for slots and points k, and calls a function with row, column and value of each
/// entry, of a symmetric matrix with those of the tiles on and above the diagonal.
///
/// # Shapes
/// `tables: [n_rows n_q][n]`, `products: [n_rows n_q][n]` or longer
#[inline(always)]
fn multiply_test(
    tables: &[f64],
    products: &[Lanes],
    n: usize,
    is_half: bool,
    mut found: impl FnMut(usize, usize, Lanes),
) {
    for j in (0..n).step_by(TILE[1]) {
        // Tiles at the end overlap with those before them.
        let j = j.min(n - TILE[1]);
        for i in (0..if is_half { j + TILE[1] } else { n }).step_by(TILE[0]) {
            let i = i.min(n - TILE[0]);
            let mut sums = [[[0.0; LANES]; TILE[1]]; TILE[0]];
            for (shapes, products) in tables.chunks_exact(n).zip(products.chunks_exact(n)) {
                let (shapes, products) = (&shapes[i..i + TILE[0]], &products[j..j + TILE[1]]);
                for a in 0..TILE[0] {
                    for b in 0..TILE[1] {
                        add_product(&mut sums[a][b], shapes[a], &products[b]);
                    }
                }
            }
            for a in 0..TILE[0] {
                for b in 0..TILE[1] {
                    found(i + a, j + b, sums[a][b]);
                }
            }
        }
    }
}
