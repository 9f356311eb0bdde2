//! Gather and scatter of values by global numbers of unknowns.

use bytemuck::Pod;
use femtile_comm::Comm;
use femtile_linalg::LinalgError;
use femtile_mesh::partition::MeshPart;
use femtile_space::TensorSpace;

use super::Keepers;
use super::cell_dofs::CellDofs;
use super::numbering::places_in_cells;
use super::wire::{From, To};

/// Values gathered from all ranks in one message.
const COLLECTED: usize = 1 << 24;

/// The owned unknowns of a rank, by global number.
#[derive(Clone, Copy)]
pub(crate) struct GlobalUnknowns<'a> {
    pub comm: &'a Comm,
    /// Global number of unknowns.
    pub n: usize,
    pub unknowns: &'a [u32],
}

impl GlobalUnknowns<'_> {
    /// Gathers the values of all unknowns, zero where no rank has one; empty on ranks that do not keep
    /// results. Collective.
    pub fn gather(&self, own: &[f64], keepers: Keepers) -> Result<Vec<f64>, LinalgError> {
        let Self { comm, n, unknowns } = *self;
        let keeps = keepers.has(comm);
        let mut all = vec![0.0; if keeps { n } else { 0 }];
        let most =
            comm.all_gather(&[unknowns.len() as u64])?.into_iter().flatten().max().unwrap_or(0) as usize;
        let len = (COLLECTED / comm.n_ranks()).max(1);
        for begin in (0..most).step_by(len) {
            let piece = begin.min(unknowns.len())..(begin + len).min(unknowns.len());
            let (unknowns, own) = (&unknowns[piece.clone()], &own[piece]);
            let (unknowns, values) = match keepers {
                Keepers::All => (comm.all_gather(unknowns)?, comm.all_gather(own)?),
                Keepers::First => (comm.gather(unknowns)?, comm.gather(own)?),
            };
            if keeps {
                let pairs = unknowns.iter().flatten().zip(values.iter().flatten());
                pairs.for_each(|(&unknown, &value)| all[unknown as usize] = value);
            }
        }
        Ok(all)
    }

    /// Scatters values of all unknowns from the first rank; returns those of this rank. Collective.
    pub fn scatter(&self, all: Option<&[f64]>) -> Result<Vec<f64>, LinalgError> {
        scatter(self.comm, self.unknowns, |unknown| all.and_then(|all| all.get(unknown as usize).copied()))
    }
}

/// Requests a value per number from the first rank, which computes it by `find`. Collective.
fn scatter<N: Pod, V: Pod>(
    comm: &Comm,
    numbers: &[N],
    mut find: impl FnMut(N) -> Option<V>,
) -> Result<Vec<V>, LinalgError> {
    if comm.rank() > 0 {
        To { comm, rank: 0 }.array(numbers)?;
        return From { comm, rank: 0 }.array();
    }
    let mut found = |rank: usize, numbers: &[N]| -> Result<Vec<V>, LinalgError> {
        let message = "asks for unknowns that the whole mesh does not have".into();
        let found: Option<Vec<V>> = numbers.iter().map(|&number| find(number)).collect();
        found.ok_or(LinalgError::Rank { rank, message })
    };
    for rank in 1..comm.n_ranks() {
        let numbers: Vec<N> = From { comm, rank }.array()?;
        To { comm, rank }.array(&found(rank, &numbers)?)?;
    }
    found(0, numbers)
}

/// The global numbers of unknowns of a part. For linear elements these are the nodes; otherwise the first
/// rank looks them up in its space on the whole mesh. Collective.
pub(crate) fn global_numbers(
    comm: &Comm,
    (part, space): (&MeshPart, Option<&TensorSpace<'_>>),
    unknowns: &[u32],
    whole: Option<&TensorSpace<'_>>,
) -> Result<Vec<u32>, LinalgError> {
    let Some(space) = space else {
        return Ok(unknowns.iter().map(|&node| part.nodes[node as usize]).collect());
    };
    let places = places_in_cells((part, space), unknowns, |_| true);
    let per_cell = space.dofs_per_cell() as u64;
    let mut cells = whole.map(CellDofs::new);
    scatter(comm, &places, |place| {
        let cells = cells.as_mut()?;
        let cell = usize::try_from(place / per_cell).ok().filter(|&cell| cell < cells.n_cells())?;
        Some(cells.of(cell)[(place % per_cell) as usize])
    })
}
