use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};

use super::{MAX_STEPS, SStepCgKernels, SStepSums, SmallMatrix};
use crate::vector::cuda::{SEVERAL_SUMS, SUM_THREADS, SUMS, n_tiles, several_sums};
use crate::{LinalgError, error::need};

static S_STEP_CG: Program =
    Program { name: "s_step_cg", source: include_str!("s_step_cg.cu"), headers: &[SUMS, SEVERAL_SUMS] };

/// Room for steps of the kernels: a block takes the smallest that it fits into.
const ROOMS: [usize; 2] = [3, MAX_STEPS];

type Couplings = (Write<f64>, Write<f64>, Write<u32>, Structure, u32, u32, u64);
type Directions = (Write<f64>, Write<f64>, Write<u32>, Structure, Structure, u32, u32, u64);
type Solution<T> = (Write<T>, Structure, Structure, u32, u64);
type Residual<T> = (Write<f64>, Write<f64>, Write<u32>, Write<T>, Read<T>, Read<T>, Read<T>, u64);
type Vector<T> = Buffer<T, Cuda>;

const COUPLINGS: Kernel<Couplings> = Kernel::new("s_step_couplings");
const DIRECTIONS: Kernel<Directions> = Kernel::new("s_step_directions");

fn program<T: Scalar>(room: usize) -> Specialisation {
    S_STEP_CG.of::<T>().define("FEMTILE_STEPS", room)
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    ROOMS.into_iter().flat_map(|room| [program::<f32>(room), program::<f64>(room)]).collect()
}

/// Vectors of one length, as the kernels take them.
struct Vectors {
    /// Rows of the vectors.
    n: usize,
    /// Directions that there are.
    n_directions: usize,
    /// Steps that there is room for.
    room: usize,
    /// `struct Vectors` of the kernels.
    fields: Structure,
}

impl Vectors {
    /// Refuses vectors of different lengths, and more of them than a block has.
    fn new<T: Scalar>(
        device: &Cuda,
        p: &[Vector<T>],
        t: &[Vector<T>],
        d: Option<&Vector<T>>,
    ) -> Result<Self, LinalgError> {
        let n = p.first().map_or(0, Buffer::len);
        let n_steps = p.len().max(t.len().saturating_sub(1));
        need("steps", n_steps.min(MAX_STEPS), n_steps)?;
        let room = ROOMS.into_iter().find(|room| n_steps <= *room).unwrap_or(MAX_STEPS);
        let address = |field: &'static str, vector: &Vector<T>| -> Result<u64, LinalgError> {
            need(field, n, vector.len())?;
            Ok(vector.address_on(device)?)
        };
        let mut fields = vec![0; 2 * room + 2];
        for (field, p) in fields.iter_mut().zip(p) {
            *field = address("p", p)?;
        }
        for (field, t) in fields[room..].iter_mut().zip(t) {
            *field = address("t", t)?;
        }
        fields[2 * room + 1] = d.map_or(Ok(0), |d| address("inverse_diagonal", d))?;
        Ok(Self { n, n_directions: p.len(), room, fields: Structure(fields) })
    }

    /// `struct Coefficients` of the kernels.
    fn coefficients(&self, at: impl Fn(usize, usize) -> f64) -> Structure {
        let rows = 0..self.room;
        Structure(
            rows.clone()
                .flat_map(|i| rows.clone().map(move |j| (i, j)))
                .map(|(i, j)| at(i, j).to_bits())
                .collect(),
        )
    }

    /// The matrix of sums by rows.
    fn matrix(&self, sums: &[f64]) -> SmallMatrix {
        let mut matrix = SmallMatrix::default();
        for (i, row) in sums.chunks_exact(self.room).take(self.room).enumerate() {
            row.iter().enumerate().for_each(|(j, sum)| matrix[(i, j)] = *sum);
        }
        matrix
    }
}

impl<T: Scalar> SStepCgKernels<T> for Cuda {
    fn s_step_couplings(
        &self,
        p: &[Vector<T>],
        t: &[Vector<T>],
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<SmallMatrix, LinalgError> {
        let v = Vectors::new(self, p, t, inverse_diagonal)?;
        let n_steps = t.len().saturating_sub(1) as u32;
        let sums = several_sums(self, v.room.pow(2), v.n, |launch, (sums, partials, counter)| {
            let arguments = (sums, partials, counter, v.fields.clone(), p.len() as u32, n_steps, v.n as u64);
            // SAFETY: as many vectors of n entries are read as there are, and there is room for the sums of each block.
            Ok(unsafe { self.launch(&program::<T>(v.room), &COUPLINGS, launch, arguments) }?)
        })?;
        Ok(v.matrix(&sums))
    }

    fn s_step_directions(
        &self,
        p: &mut [Vector<T>],
        t: &[Vector<T>],
        b: &SmallMatrix,
        n_before: usize,
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<SStepSums, LinalgError> {
        let v = Vectors::new(self, p, t, inverse_diagonal)?;
        let n_steps = t.len().saturating_sub(1);
        let n_needed = n_steps.max(n_before);
        need("p", n_needed, v.n_directions.min(n_needed))?;
        let b = v.coefficients(|l, j| if l < n_before { b[(l, j)] } else { 0.0 });
        let n_sums = v.room.pow(2) + v.room;
        let sums = several_sums(self, n_sums, v.n, |launch, (sums, partials, counter)| {
            let (n_before, n_steps) = (n_before as u32, n_steps as u32);
            let vectors = v.fields.clone();
            let arguments = (sums, partials, counter, vectors, b, n_before, n_steps, v.n as u64);
            // SAFETY: as in `s_step_couplings`; there are as many directions as are read and written.
            Ok(unsafe { self.launch(&program::<T>(v.room), &DIRECTIONS, launch, arguments) }?)
        })?;
        let mut found = SStepSums { w: v.matrix(&sums), ..SStepSums::default() };
        found.g[..v.room].copy_from_slice(&sums[v.room.pow(2)..]);
        Ok(found)
    }

    fn s_step_solution(&self, x: &mut Vector<T>, p: &[Vector<T>], a: &[f64]) -> Result<(), LinalgError> {
        let v = Vectors::new(self, p, &[], None)?;
        need("x", v.n, x.len())?;
        let n_steps = p.len().min(a.len());
        let a = v.coefficients(|i, j| if i == 0 && j < n_steps { a[j] } else { 0.0 });
        let arguments = (x.write(), v.fields, a, n_steps as u32, v.n as u64);
        let (kernel, launch) =
            (Kernel::<Solution<T>>::new("s_step_solution"), Launch::line(n_tiles(v.n), SUM_THREADS));
        // SAFETY: x and as many directions as are read have n entries.
        Ok(unsafe { self.launch(&program::<T>(v.room), &kernel, launch, arguments) }?)
    }

    fn s_step_residual(
        &self,
        t_0: &mut Vector<T>,
        b: &Vector<T>,
        v: &Vector<T>,
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<f64, LinalgError> {
        let n = t_0.len();
        need("b", n, b.len())?;
        need("v", n, v.len())?;
        inverse_diagonal.map_or(Ok(()), |d| need("inverse_diagonal", n, d.len()))?;
        let d = inverse_diagonal.map_or_else(Read::none, Buffer::read);
        let sums = several_sums(self, 1, n, |launch, (sums, partials, counter)| {
            let arguments = (sums, partials, counter, t_0.write(), b.read(), v.read(), d, n as u64);
            let kernel = Kernel::<Residual<T>>::new("s_step_residual");
            // SAFETY: all vectors have n entries, and there is room for a sum of each block.
            Ok(unsafe { self.launch(&program::<T>(ROOMS[0]), &kernel, launch, arguments) }?)
        })?;
        Ok(sums[0])
    }
}
