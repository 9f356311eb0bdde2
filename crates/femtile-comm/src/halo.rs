//! Halo: the exchange of ghosts, which are copies of other ranks' unknowns.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use femtile_device::parallel;
use femtile_linalg::{LinalgError, need};

use crate::{Comm, Incoming, Outgoing};

/// The lists of a halo exchange: owned unknowns that other ranks copy (exports), and ghosts by owner
/// (imports).
///
/// Ghosts come after the owned unknowns, sorted by owner, so each message is received in place.
///
/// # Source
/// `[kronbichler2022]`, section 5.3.
#[derive(Debug)]
pub struct Halo {
    comm: Comm,
    n_owned: usize,
    n_ghosts: usize,
    /// Per neighbour, the owned unknowns that it copies, in the order of its ghosts.
    exports: Vec<(usize, Vec<u32>)>,
    /// The ghosts of each owner.
    imports: Vec<(usize, Range<usize>)>,
}

/// Owned unknowns that one thread searches for requested ones.
const COMPARED: usize = 1 << 14;

/// Finds the local numbers of requested unknowns. Few are requested, so threads search the owned unknowns for
/// them.
fn places_of(owned: &[u64], wanted: &[Vec<u64>]) -> HashMap<u64, u32> {
    let wanted: HashSet<u64> = wanted.iter().flatten().copied().collect();
    let found = parallel::map(owned.len().div_ceil(COMPARED), 1, |piece| {
        let begin = piece * COMPARED;
        let ids = owned[begin..owned.len().min(begin + COMPARED)].iter().zip(begin as u32..);
        ids.filter(|(id, _)| wanted.contains(id)).map(|(&id, place)| (id, place)).collect::<Vec<_>>()
    });
    found.into_iter().flatten().collect()
}

impl Halo {
    /// Sends the list of `ghosts` (owner and global number) to their owners and receives the lists of other
    /// ranks. `owned` has the global numbers of owned unknowns. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Rank`] if a rank requests an unknown from a rank that does not own it;
    /// [`LinalgError::Setting`] if ghosts are not sorted by owner.
    pub fn new(comm: &Comm, owned: &[u64], ghosts: &[(u32, u64)]) -> Result<Self, LinalgError> {
        let invalid = |message: String| LinalgError::Setting { field: "ghosts", message };
        let (rank, n_ranks) = (comm.rank(), comm.n_ranks());
        if !ghosts.is_sorted_by_key(|(owner, _)| *owner) {
            return Err(invalid("they are not sorted by owner".into()));
        }
        if let Some((owner, id)) =
            ghosts.iter().find(|(owner, _)| *owner as usize >= n_ranks || *owner as usize == rank)
        {
            return Err(invalid(format!(
                "unknown {id} has the owner {owner}: none of the other {n_ranks} ranks"
            )));
        }
        let mut asked = vec![Vec::new(); n_ranks];
        let mut imports = Vec::new();
        let mut next = 0;
        for group in ghosts.chunk_by(|a, b| a.0 == b.0) {
            let owner = group[0].0 as usize;
            asked[owner] = group.iter().map(|(_, id)| *id).collect();
            imports.push((owner, next..next + group.len()));
            next += group.len();
        }
        let wanted = comm.all_to_all(&asked)?;
        let places = places_of(owned, &wanted);
        let mut exports = Vec::new();
        for (other, ids) in wanted.into_iter().enumerate().filter(|(_, ids)| !ids.is_empty()) {
            let place = |id: &u64| {
                places.get(id).copied().ok_or_else(|| LinalgError::Rank {
                    rank: other,
                    message: format!("asks rank {rank} for unknown {id}, which that does not own"),
                })
            };
            exports.push((other, ids.iter().map(place).collect::<Result<Vec<u32>, _>>()?));
        }
        Ok(Self { comm: comm.clone(), n_owned: owned.len(), n_ghosts: ghosts.len(), exports, imports })
    }

    /// Returns the halo of a rank that is alone and owns all of `n` unknowns: it has no ghosts.
    pub fn alone(n: usize) -> Self {
        Self { comm: Comm::alone(), n_owned: n, n_ghosts: 0, exports: Vec::new(), imports: Vec::new() }
    }

    /// Takes known lists, without messages to find them: per rank, the local numbers of exported unknowns and
    /// the number of ghosts to receive. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] on all ranks if the ranks of a list are not sorted, are invalid or include
    /// the calling rank, if a local number is out of range, or if an export and its import differ in length.
    pub fn of_known(
        comm: &Comm,
        n_owned: usize,
        exports: Vec<(usize, Vec<u32>)>,
        n_imports: &[(usize, usize)],
    ) -> Result<Self, LinalgError> {
        let are_others = |ranks: &[usize]| {
            let is_other = |&rank: &usize| rank < comm.n_ranks() && rank != comm.rank();
            ranks.is_sorted_by(|one, next| one < next) && ranks.iter().all(is_other)
        };
        let to: Vec<usize> = exports.iter().map(|(rank, _)| *rank).collect();
        let from: Vec<usize> = n_imports.iter().map(|(rank, _)| *rank).collect();
        let mut places = exports.iter().flat_map(|(_, places)| places);
        let is_own = are_others(&to) && are_others(&from) && places.all(|&place| (place as usize) < n_owned);
        // Lengths are gathered, so all ranks reach the same verdict.
        let n_ranks = comm.n_ranks();
        let mut lengths = vec![0; 2 * n_ranks + 1];
        lengths[2 * n_ranks] = u64::from(is_own);
        if is_own {
            exports.iter().for_each(|(to, places)| lengths[*to] = places.len() as u64);
            n_imports.iter().for_each(|(from, n)| lengths[n_ranks + from] = *n as u64);
        }
        let all = comm.all_gather(&lengths)?;
        let pairs = (0..n_ranks).flat_map(|from| (0..n_ranks).map(move |to| (from, to)));
        let is_right =
            all.iter().all(|lengths| lengths.len() == 2 * n_ranks + 1 && lengths[2 * n_ranks] == 1)
                && pairs.into_iter().all(|(from, to)| all[from][to] == all[to][n_ranks + from]);
        if !is_right {
            let message =
                "ranks are not sorted, a place is beyond the unknowns, or an import has another length";
            return Err(LinalgError::Setting { field: "exports", message: message.into() });
        }
        let mut n_ghosts = 0;
        let import = |&(rank, n): &(usize, usize)| {
            n_ghosts += n;
            (rank, n_ghosts - n..n_ghosts)
        };
        let imports = n_imports.iter().map(import).collect();
        Ok(Self { comm: comm.clone(), n_owned, n_ghosts, exports, imports })
    }

    /// Returns the halo of vectors with `n` components of each unknown, which follow each other.
    #[must_use]
    pub fn of_components(&self, n: usize) -> Self {
        let of_all = |&place: &u32| (0..n as u32).map(move |component| place * n as u32 + component);
        let exports = self.exports.iter().map(|(to, places)| (*to, places.iter().flat_map(of_all).collect()));
        let imports = self.imports.iter().map(|(from, range)| (*from, range.start * n..range.end * n));
        Self {
            comm: self.comm.clone(),
            n_owned: self.n_owned * n,
            n_ghosts: self.n_ghosts * n,
            exports: exports.collect(),
            imports: imports.collect(),
        }
    }

    /// Returns the communicator.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Returns the number of owned unknowns.
    pub fn n_owned(&self) -> usize {
        self.n_owned
    }

    /// Returns the number of ghosts.
    pub fn n_ghosts(&self) -> usize {
        self.n_ghosts
    }

    /// Returns the number of values that this rank sends per exchange.
    pub fn n_sent(&self) -> usize {
        self.exports.iter().map(|(_, places)| places.len()).sum()
    }

    /// Returns each rank that this one sends to, with the exported owned unknowns in the order of that rank's
    /// ghosts.
    pub fn exports(&self) -> &[(usize, Vec<u32>)] {
        &self.exports
    }

    /// Returns each rank that this one receives from, with the range of its ghosts.
    pub fn imports(&self) -> &[(usize, Range<usize>)] {
        &self.imports
    }

    /// Returns the first exported unknown; all before it are copied by no neighbour.
    pub fn first_export(&self) -> usize {
        let places = self.exports.iter().flat_map(|(_, places)| places);
        places.min().map_or(self.n_owned, |first| *first as usize)
    }

    /// Adds the values of ghosts to their owners' values, in the order of ranks: the transpose of
    /// [`Halo::import`]. Collective.
    ///
    /// # Errors
    /// As [`Halo::import`].
    pub fn add_to_owners<T: bytemuck::Pod + std::ops::AddAssign>(
        &self,
        owned: &mut [T],
        ghosts: &[T],
    ) -> Result<(), LinalgError> {
        need("ghosts", self.n_ghosts, ghosts.len())?;
        need("owned", self.n_owned, owned.len())?;
        let sends = self.imports.iter();
        let sends = sends
            .map(|(to, range)| Outgoing { to: *to, bytes: bytemuck::cast_slice(&ghosts[range.clone()]) });
        let sends: Vec<Outgoing<'_>> = sends.collect();
        let mut letters: Vec<Vec<T>> =
            self.exports.iter().map(|(_, places)| vec![T::zeroed(); places.len()]).collect();
        let rooms = self.exports.iter().zip(&mut letters);
        let mut rooms: Vec<Incoming<'_>> = rooms
            .map(|((from, _), room)| Incoming { from: *from, bytes: bytemuck::cast_slice_mut(room) })
            .collect();
        self.comm.exchange(&sends, &mut rooms, &mut || ())?;
        for ((_, places), letter) in self.exports.iter().zip(&letters) {
            places.iter().zip(letter).for_each(|(&place, &value)| owned[place as usize] += value);
        }
        Ok(())
    }

    /// Updates the ghosts from their owners, and calls `meanwhile` while messages are in transit. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if the lengths of vectors are wrong; [`LinalgError::Rank`].
    pub fn import<T: bytemuck::Pod>(
        &self,
        ghosts: &mut [T],
        owned: &[T],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), LinalgError> {
        need("ghosts", self.n_ghosts, ghosts.len())?;
        need("owned", self.n_owned, owned.len())?;
        let packed = |places: &Vec<u32>| places.iter().map(|&place| owned[place as usize]).collect();
        let letters: Vec<Vec<T>> = self.exports.iter().map(|(_, places)| packed(places)).collect();
        let to = |((to, _), letter): (&(usize, Vec<u32>), _)| Outgoing {
            to: *to,
            bytes: bytemuck::cast_slice(letter),
        };
        let sends: Vec<Outgoing<'_>> =
            self.exports.iter().zip(letters.iter().map(Vec::as_slice)).map(to).collect();
        let mut rest = ghosts;
        let mut rooms = Vec::with_capacity(self.imports.len());
        for (from, range) in &self.imports {
            let (room, others) = rest.split_at_mut(range.len());
            rooms.push(Incoming { from: *from, bytes: bytemuck::cast_slice_mut(room) });
            rest = others;
        }
        self.comm.exchange(&sends, &mut rooms, meanwhile)
    }
}
