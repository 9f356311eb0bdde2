//! Bank conflicts of shared memory, counted from the positions of values.

use femtile::device::Scalar;

use super::kernel::{Layout, PatchPass, PublishedKernel};

/// Bytes that all banks deliver together.
const BYTES_AT_ONCE: usize = 128;

/// Positions of the entries of a tensor, as `struct Box` of the kernels.
struct Tensor {
    lengths: [usize; 3],
    row: usize,
    layer: usize,
    edge: usize,
    is_packed: bool,
}

/// A product along an axis from one tensor to another, in the loop order of `contract` of the kernels.
struct Product {
    axis: usize,
    is_transposed: bool,
    from: Tensor,
    to: Tensor,
    /// Whether the old result is read before it is written; none where the result goes to global memory.
    is_added: Option<bool>,
}

/// A block of threads in a pass.
struct Block {
    kernel: PublishedKernel,
    /// Number of banks in values.
    n_banks: usize,
    n: usize,
    m: usize,
    edge: usize,
    team: usize,
    teams: usize,
    team_values: usize,
}

impl PublishedKernel {
    /// Returns the number of bank conflicts of one block in a pass; none for kernels whose products are not modelled.
    ///
    /// # Source
    /// `[cui2024]`, section 4.1.2 and Table 5.
    pub fn bank_conflicts<T: Scalar>(self, degree: usize, pass: PatchPass) -> Option<usize> {
        let is_known = matches!(
            self.layout,
            Layout::Basic | Layout::ThreadPerNode | Layout::LinearIndexing | Layout::ConflictFree
        );
        (is_known && self.lack::<T>(degree).is_none())
            .then(|| Block::new::<T>(self, degree, pass).conflicts(pass))
    }
}

impl Tensor {
    fn at(&self, at: [usize; 3]) -> usize {
        let place = |axis: usize| at[axis] + usize::from(!self.is_packed && self.lengths[axis] < self.edge);
        place(0) + place(1) * self.row + place(2) * self.layer
    }
}

impl Block {
    fn new<T: Scalar>(kernel: PublishedKernel, degree: usize, pass: PatchPass) -> Self {
        let (n, m) = (2 * degree - 1, 2 * degree + 1);
        let shape = kernel.shape::<T>(degree, pass);
        let of_teams = |teams| kernel.shared_bytes::<T>(degree, pass, teams) / size_of::<T>();
        Self {
            kernel,
            n_banks: BYTES_AT_ONCE / size_of::<T>(),
            n,
            m,
            edge: if pass == PatchPass::Solve { n } else { m },
            team: shape.team,
            teams: shape.teams,
            team_values: of_teams(2) - of_teams(1),
        }
    }

    fn conflicts(&self, pass: PatchPass) -> usize {
        let loads = match pass {
            PatchPass::Solve => self.load(self.n),
            _ => self.load(self.m) + self.load(self.n),
        };
        loads + self.products(pass).iter().map(|product| self.of_product(product)).sum::<usize>()
    }

    fn tensor(&self, lengths: [usize; 3]) -> Tensor {
        let (is_packed, edge) = (self.kernel.is_packed(), self.edge);
        let (row, layer) =
            if is_packed { (lengths[0], lengths[0] * lengths[1]) } else { (edge, edge * edge) };
        Tensor { lengths, row, layer, edge, is_packed }
    }

    fn products(&self, pass: PatchPass) -> Vec<Product> {
        let (n, m) = (self.n, self.m);
        let product = |axis: usize, is_transposed, from: [usize; 3], is_added| {
            let mut to = from;
            to[axis] = n;
            Product { axis, is_transposed, from: self.tensor(from), to: self.tensor(to), is_added }
        };
        let (set, add) = (Some(false), Some(true));
        let last = if pass == PatchPass::Residual { None } else { add };
        let residual = [
            product(0, false, [m; 3], set),
            product(1, false, [n, m, m], set),
            product(2, false, [n, n, m], add),
            product(1, false, [n, m, m], set),
            product(0, false, [m; 3], set),
            product(1, false, [n, m, m], add),
            product(2, false, [n, n, m], last),
        ];
        let [z, y, x] = [2, 1, 0].map(|axis| product(axis, true, [n; 3], set));
        let [back_x, back_y] = [0, 1].map(|axis| product(axis, false, [n; 3], set));
        let solve = [z, y, x, back_x, back_y, product(2, false, [n; 3], None)];
        let (has_residual, has_solve) = (pass != PatchPass::Solve, pass != PatchPass::Residual);
        let residual = residual.into_iter().filter(|_| has_residual);
        residual.chain(solve.into_iter().filter(|_| has_solve)).collect()
    }

    /// Conflicts of writing `length`³ node values in order.
    fn load(&self, length: usize) -> usize {
        let tensor = self.tensor([length; 3]);
        let at = |i: usize| tensor.at([i % length, i / length % length, i / (length * length)]);
        let place = |turn: usize, thread: usize| {
            let i = turn * self.team + thread % self.team;
            (i < length.pow(3)).then(|| thread / self.team * self.team_values + at(i))
        };
        (0..length.pow(3).div_ceil(self.team)).map(|turn| self.access(|thread| place(turn, thread))).sum()
    }

    fn of_product(&self, product: &Product) -> usize {
        let Product { axis, is_transposed, from, to, is_added } = product;
        let is_packed = self.kernel.is_packed();
        let fast = usize::from(!is_packed && *axis == 0);
        let slow = if is_packed { 1 } else { *axis };
        let (turn, length) = (3 - fast - slow, from.lengths[*axis]);
        let of_thread = if self.kernel.layout == Layout::ThreadPerNode { 1 } else { to.lengths[turn] };
        let index = |thread: usize, i: usize| {
            let [p, q, layer] =
                self.place(thread % self.team, [fast, slow, turn].map(|axis| to.lengths[axis]))?;
            let mut at = [0; 3];
            (at[fast], at[slow], at[turn]) = (p, q, layer + i);
            Some(at)
        };
        let of_team = |thread: usize| thread / self.team * self.team_values;
        let mut found = 0;
        for i in 0..of_thread {
            for j in 0..length {
                let entry = |row: usize| if *is_transposed { j * length + row } else { row * length + j };
                found += self.access(|thread| Some(entry(index(thread, i)?[*axis])));
                found += self.access(|thread| {
                    let mut at = index(thread, i)?;
                    at[*axis] = j;
                    Some(of_team(thread) + from.at(at))
                });
            }
            let result = self.access(|thread| Some(of_team(thread) + to.at(index(thread, i)?)));
            found += result * is_added.map_or(0, |is_added| 1 + usize::from(is_added));
        }
        found
    }

    /// Returns the indices of a thread along three axes, as `struct Place` of the kernels.
    fn place(&self, own: usize, [fast, slow, layers]: [usize; 3]) -> Option<[usize; 3]> {
        let place = match self.kernel.layout {
            Layout::Basic | Layout::ThreadPerNode => {
                let inside = |index: usize, length: usize| index.checked_sub(usize::from(length < self.edge));
                let (row, layer) = (own / self.edge, own / (self.edge * self.edge));
                let is_cube = self.kernel.layout == Layout::ThreadPerNode;
                [
                    inside(own % self.edge, fast)?,
                    inside(if is_cube { row % self.edge } else { row }, slow)?,
                    if is_cube { inside(layer, layers)? } else { 0 },
                ]
            }
            _ => [own % fast, own / fast, 0],
        };
        (place[0] < fast && place[1] < slow && place[2] < layers).then_some(place)
    }

    /// Returns the conflicts of one access by all threads.
    fn access(&self, place: impl Fn(usize) -> Option<usize>) -> usize {
        let threads: Vec<usize> = (0..self.team * self.teams).collect();
        let at_once = |threads: &[usize]| {
            let mut places: Vec<usize> = threads.iter().filter_map(|&thread| place(thread)).collect();
            places.sort_unstable();
            places.dedup();
            let mut counts = vec![0_usize; self.n_banks];
            places.iter().for_each(|place| counts[place % self.n_banks] += 1);
            counts.into_iter().max().unwrap_or(0).saturating_sub(1)
        };
        threads.chunks(self.n_banks).map(at_once).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Passes;
    use super::*;

    const PASSES: [(Passes, &[PatchPass]); 2] =
        [(Passes::Fused, &[PatchPass::Fused]), (Passes::Separate, &[PatchPass::Residual, PatchPass::Solve])];

    #[test]
    fn packed_values_meet_in_no_bank() {
        for (passes, launched) in PASSES {
            let kernel = PublishedKernel { passes, layout: Layout::ConflictFree };
            for (degree, &pass) in (1..=8).flat_map(|degree| launched.iter().map(move |pass| (degree, pass)))
            {
                assert_eq!(
                    kernel.bank_conflicts::<f64>(degree, pass),
                    Some(0),
                    "degree {degree}, {pass:?}, f64"
                );
                assert_eq!(
                    kernel.bank_conflicts::<f32>(degree, pass),
                    Some(0),
                    "degree {degree}, {pass:?}, f32"
                );
            }
        }
    }

    #[test]
    fn values_amid_those_of_the_edge_meet_in_banks() {
        for layout in [Layout::Basic, Layout::LinearIndexing, Layout::ThreadPerNode] {
            let kernel = PublishedKernel { passes: Passes::Fused, layout };
            assert!(kernel.bank_conflicts::<f64>(3, PatchPass::Fused) > Some(0), "{layout:?}");
        }
        let dense = PublishedKernel { passes: Passes::Fused, layout: Layout::InverseMatrix };
        assert_eq!(dense.bank_conflicts::<f64>(3, PatchPass::Fused), None);
    }
}
