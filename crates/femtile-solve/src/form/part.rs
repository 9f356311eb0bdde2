//! The part of a problem that a rank assembles.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use femtile_comm::{Comm, Halo, LocalUnknowns, OwnedRows};
use femtile_device::Cpu;
use femtile_form::{Argument, Coefficient, Form};
use femtile_linalg::LinalgError;
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use femtile_mesh::partition::MeshPart;
use femtile_operator::{CpuOperator, DiscreteForm};
use femtile_space::{LinearConstraints, LinearRelation, Space};

use super::FormProblem;
use super::interface::Interface;
use super::problem::FacetTerm;
use super::solve::{Conditions, assemble};
use super::totals::Loads;
use crate::SolveError;
use crate::ranks::{Numbering, numbers_in, owned_rows};

/// A problem on the part of a rank: all cells that touch a node which it owns.
///
/// A degree of freedom belongs to the highest owner of the corners of its vertex, edge, face or cell. All cells and facets
/// around it are in the part of that rank, so its rows are complete there.
pub(super) struct FormPart<'p> {
    part: &'p MeshPart,
    problem: FormProblem<'p>,
    form: Form,
    space: Space<'p>,
    numbering: Numbering,
    /// The number of each degree of freedom in the space on the whole mesh.
    numbers: Vec<u32>,
    /// The degrees of freedom by their numbers there: pairs with the own number, sorted, once relations ask for them.
    places: OnceLock<Vec<(u32, u32)>>,
}

/// The unknowns of a rank: those of all components of its degrees of freedom.
pub(super) struct PartUnknowns {
    /// Owned unknowns and ghosts among those of the part.
    pub local: Arc<LocalUnknowns>,
    /// The number of each owned unknown on the whole mesh.
    pub owned: Vec<u32>,
}

impl PartUnknowns {
    /// Exchanges the lists of ghosts for a number of components; `own` is none if the rank has no part. Collective.
    pub fn new(comm: &Comm, own: Option<&FormPart<'_>>, n_components: usize) -> Result<Self, SolveError> {
        let components = |dof: u32| (0..n_components as u32).map(move |c| dof * n_components as u32 + c);
        let of_all = |dofs: &[u32]| dofs.iter().copied().flat_map(components).collect::<Vec<u32>>();
        let in_whole = |dofs: &[u32]| {
            let numbers = dofs.iter().map(|&dof| own.map_or(0, |own| own.numbers[dof as usize]));
            numbers.flat_map(components).collect::<Vec<u32>>()
        };
        let (owned, ghosts, owners) =
            own.map_or((&[][..], &[][..], &[][..]), |own| own.numbering.owned_and_ghosts());
        let numbers = in_whole(owned);
        let ids: Vec<u64> = numbers.iter().map(|&number| u64::from(number)).collect();
        let owners = owners.iter().flat_map(|&owner| std::iter::repeat_n(owner, n_components));
        let of_ghosts: Vec<(u32, u64)> = owners.zip(in_whole(ghosts).into_iter().map(u64::from)).collect();
        let halo = Halo::new(comm, &ids, &of_ghosts)?;
        let local = LocalUnknowns::new(Arc::new(halo), of_all(owned), of_all(ghosts))?;
        Ok(Self { local: Arc::new(local), owned: numbers })
    }
}

impl<'p> FormPart<'p> {
    /// Restricts a problem, with its space on the whole mesh, to the part of `rank`.
    pub fn new(
        problem: &FormProblem<'_>,
        whole: &Space<'_>,
        part: &'p MeshPart,
        rank: usize,
    ) -> Result<Self, SolveError> {
        let space = Space::new(&part.mesh, problem.degree)?;
        let numbering = Numbering::of_space(part, &space, rank)?;
        let numbers = numbers_of_dofs(whole, &space, &part.cells);
        let of_part = CellSubset {
            mesh: &part.mesh,
            boundary: &part.boundary,
            facets: &part.facets,
            cells: &part.cells,
        };
        let problem = problem.on_cells(of_part, |_| true);
        Ok(Self { part, form: problem.form()?, problem, space, numbering, numbers, places: OnceLock::new() })
    }

    /// Assembles the owned rows of matrix and right side; constraints and loads are those on the whole mesh.
    pub fn rows(
        &self,
        cpu: &Cpu,
        at: Conditions<'_>,
        unknowns: &LocalUnknowns,
    ) -> Result<(OwnedRows<f64>, Vec<f64>), SolveError> {
        let (constraints, loads) = (self.constraints(at.constraints)?, self.loads(at.loads));
        let at = Conditions { constraints: &constraints, loads: &loads, ..at };
        let assembled = self.discrete().and_then(|discrete| assemble(cpu, None, discrete, at));
        let (matrix, b) = assembled.map_err(|error| self.in_global_numbers(error))?;
        Ok((owned_rows(cpu, unknowns, &matrix)?, unknowns.restrict_to_owned(&b)))
    }

    /// Prepares the form on the cells of the part.
    pub fn operator(&self, cpu: &Cpu) -> Result<CpuOperator<'_>, SolveError> {
        let operator = self.discrete().and_then(|discrete| Ok(CpuOperator::new(discrete, cpu)?));
        operator.map_err(|error| self.in_global_numbers(error))
    }

    /// Returns the right side of sources at points at the unknowns of the part, ghosts included.
    pub fn loads(&self, of_whole: &[(u32, f64)]) -> Loads {
        let mut loads = BTreeMap::new();
        of_whole.iter().for_each(|&(unknown, load)| *loads.entry(unknown).or_insert(0.0) += load);
        let own = (0..).zip(self.unknowns());
        own.filter_map(|(unknown, in_whole)| Some((unknown, *loads.get(&in_whole)?))).collect()
    }

    /// Returns the problem of the part with its space.
    pub fn problem(&self) -> (&FormProblem<'p>, &Space<'p>) {
        (&self.problem, &self.space)
    }

    fn discrete(&self) -> Result<DiscreteForm<'_>, SolveError> {
        Ok(DiscreteForm::new(&self.space, &self.form, &self.problem.facets)?)
    }

    /// Returns an error with the numbers of cells and nodes of the whole mesh.
    pub fn in_global_numbers(&self, error: SolveError) -> SolveError {
        match error {
            SolveError::Fem(error) => error.in_global_numbers(&self.part.cells, &self.part.nodes).into(),
            other => other,
        }
    }

    /// Returns the Dirichlet values and relations of the unknowns of the part, ghosts included. It has all that its unknowns follow.
    pub fn constraints(&self, of_whole: &LinearConstraints) -> Result<LinearConstraints, SolveError> {
        let relation = |(dof, in_whole): (u32, u32)| {
            let terms = of_whole.terms(in_whole).unwrap_or_default().iter();
            let terms =
                terms.map(|&(other, c)| Ok((self.own(other)?, c))).collect::<Result<_, SolveError>>()?;
            let constant = of_whole.value(in_whole).unwrap_or_default();
            Ok(LinearRelation { dof, terms, constant })
        };
        let is_constrained = |(_, in_whole): &(u32, u32)| of_whole.contains(*in_whole);
        let relations = (0..).zip(self.unknowns()).filter(is_constrained).map(relation);
        let relations = relations.collect::<Result<Vec<LinearRelation>, SolveError>>()?;
        Ok(LinearConstraints::new(self.space.n_dofs() * self.form.n_components(), &relations)?)
    }

    /// Returns the unknown of the part with a number on the whole mesh.
    fn own(&self, in_whole: u32) -> Result<u32, SolveError> {
        let n = self.form.n_components() as u32;
        let places = self.places.get_or_init(|| {
            let mut places: Vec<(u32, u32)> = self.numbers.iter().copied().zip(0..).collect();
            places.sort_unstable();
            places
        });
        let place = places.binary_search_by_key(&(in_whole / n), |(number, _)| *number);
        let lacking = |_| LinalgError::Setting {
            field: "constraints",
            message: format!("unknown {in_whole}, which others follow, is not in the part of the rank"),
        };
        Ok(places[place.map_err(lacking)?].1 * n + in_whole % n)
    }

    /// Returns the number on the whole mesh of each unknown of the part.
    fn unknowns(&self) -> impl Iterator<Item = u32> {
        let n = self.form.n_components() as u32;
        self.numbers.iter().flat_map(move |&dof| (0..n).map(move |c| dof * n + c))
    }
}

/// Some cells of a mesh with their facets.
#[derive(Clone, Copy)]
pub(super) struct CellSubset<'p> {
    pub mesh: &'p Mesh,
    pub boundary: &'p BoundaryFacets,
    /// The position of the first ones of these facets among all of the problem.
    pub facets: &'p [u32],
    /// The number of each cell in the whole mesh.
    pub cells: &'p [u32],
}

/// Returns the number in the space `whole` of each degree of freedom of `space`, a part of its cells.
pub(super) fn numbers_of_dofs(whole: &Space<'_>, space: &Space<'_>, cells: &[u32]) -> Vec<u32> {
    if let (Some(whole), Some(space)) = (whole.tensor(), space.tensor()) {
        return numbers_in(whole, space, cells).into_iter().map(|number| number as u32).collect();
    }
    let mut numbers = vec![0; space.n_dofs()];
    let (mut here, mut there) = (vec![0; space.element().n_dofs()], vec![0; space.element().n_dofs()]);
    for (position, &cell) in cells.iter().enumerate() {
        space.cell_dofs(position, &mut here);
        whole.cell_dofs(cell as usize, &mut there);
        here.iter().zip(&there).for_each(|(&dof, &number)| numbers[dof as usize] = number);
    }
    numbers
}

impl FormProblem<'_> {
    /// Returns the problem on some cells, with those integrals over facets that are wanted, without values of u and sources at points.
    pub(super) fn on_cells<'p>(
        &self,
        part: CellSubset<'p>,
        is_wanted: impl Fn(u32) -> bool,
    ) -> FormProblem<'p> {
        let of_part = |arguments: &[(String, Argument)]| -> Vec<(String, Argument)> {
            let on_cells = |argument: &Argument| on_cells(argument, part.cells);
            arguments.iter().map(|(name, argument)| (name.clone(), on_cells(argument))).collect()
        };
        let mut place_of = vec![u32::MAX; self.facets.len()];
        let wanted = part.facets.iter().zip(0..).filter(|(facet, _)| is_wanted(**facet));
        wanted.for_each(|(&facet, place)| place_of[facet as usize] = place);
        let term = |(term, facets): (&FacetTerm, Vec<u32>)| FacetTerm {
            facets: {
                let places = facets.into_iter().map(|facet| place_of[facet as usize]);
                places.filter(|&place| place != u32::MAX).collect()
            },
            arguments: of_part(&term.arguments),
            ..term.clone()
        };
        let boundary = Arc::new(part.boundary.clone());
        let mut problem = FormProblem::new(part.mesh, boundary, self.equation.clone()).degree(self.degree);
        problem.is_axisymmetric = self.is_axisymmetric;
        problem.thickness = self.thickness.as_ref().map(|thickness| thickness.on_cells(part.cells));
        problem.is_linear.clone_from(&self.is_linear);
        problem.coefficients = of_part(&self.coefficients);
        let places = |pair: &[u32; 2]| {
            Some(pair.map(|facet| place_of[facet as usize])).filter(|own| !own.contains(&u32::MAX))
        };
        let interface = |own: &Interface| Interface {
            pairs: own.pairs.iter().filter_map(places).collect(),
            ..own.clone()
        };
        problem.interfaces = self.interfaces.iter().map(interface).collect();
        problem.terms = self.terms.iter().zip(self.facets_of_terms()).map(term).collect();
        problem.exact.clone_from(&self.exact);
        problem
    }
}

fn on_cells(argument: &Argument, cells: &[u32]) -> Argument {
    let of_part = |coefficient: &Coefficient| coefficient.on_cells(cells);
    match argument {
        Argument::One(coefficient) => Argument::One(of_part(coefficient)),
        Argument::Vector(parts) => Argument::Vector(parts.iter().map(of_part).collect()),
    }
}
