use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};

use super::kernels::{enough, few};
use super::{MAX_STEPS, SStepCgKernels, SStepGram, SmallMatrix};
use crate::vector::cuda::{SEVERAL_SUMS, SUM_THREADS, SUMS, n_tiles, several_sums};
use crate::{LinalgError, error::need};

static S_STEP_CG: Program =
    Program { name: "s_step_cg", source: include_str!("s_step_cg.cu"), headers: &[SUMS, SEVERAL_SUMS] };

/// Room for steps of the kernels: a block takes the smallest that it fits into.
const ROOMS: [usize; 2] = [3, MAX_STEPS];

type Gram = (Write<f64>, Write<f64>, Write<u32>, Structure, u32, u32, u64);
type Update<T> = (Write<T>, Structure, Structure, Structure, u32, u32, u64);
type Residual<T> = (Write<f64>, Write<f64>, Write<u32>, Write<T>, Read<T>, Read<T>, Read<T>, u64);
type Vector<T> = Buffer<T, Cuda>;

const GRAM: Kernel<Gram> = Kernel::new("s_step_gram");

fn program<T: Scalar>(room: usize) -> Specialisation {
    S_STEP_CG.of::<T>().define("FEMTILE_STEPS", room)
}

/// Returns the room of a block of this many steps.
fn room(n_steps: usize) -> usize {
    ROOMS.into_iter().find(|room| n_steps <= *room).unwrap_or(MAX_STEPS)
}

/// Returns the programs of blocks of up to this many steps, as the last block may be shorter than the others.
pub fn programs<T: Scalar>(n_steps: usize) -> Vec<Specialisation> {
    ROOMS.into_iter().filter(|own| *own <= room(n_steps)).map(program::<T>).collect()
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    ROOMS.into_iter().flat_map(|room| [program::<f32>(room), program::<f64>(room)]).collect()
}

/// Vectors of one length, as the kernels take them.
struct Vectors {
    /// Rows of the vectors.
    n: usize,
    /// The largest number of steps.
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
        few(p.len(), t.len())?;
        let n = p.iter().chain(t).next().map_or(0, Buffer::len);
        let n_steps = p.len().max(t.len().saturating_sub(1));
        let room = room(n_steps);
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
        Ok(Self { n, room, fields: Structure(fields) })
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
}

impl<T: Scalar> SStepCgKernels<T> for Cuda {
    fn s_step_gram(
        &self,
        p: &[Vector<T>],
        t: &[Vector<T>],
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<SStepGram, LinalgError> {
        let v = Vectors::new(self, p, t, inverse_diagonal)?;
        let n_sums = SStepGram::n_values(v.room, v.room);
        let sums = several_sums(self, n_sums, v.n, |launch, (sums, partials, counter)| {
            let (n_before, n_t) = (p.len() as u32, t.len() as u32);
            let arguments = (sums, partials, counter, v.fields.clone(), n_before, n_t, v.n as u64);
            // SAFETY: as many vectors of n entries are read as there are, and there is room for the sums of each block.
            Ok(unsafe { self.launch(&program::<T>(v.room), &GRAM, launch, arguments) }?)
        })?;
        Ok(SStepGram::from_values(&sums, v.room, v.room))
    }

    fn s_step_update(
        &self,
        x: &mut Vector<T>,
        p: &mut [Vector<T>],
        r: &[Vector<T>],
        b: &SmallMatrix,
        a: &[f64],
        a_before: &[f64],
    ) -> Result<(), LinalgError> {
        let (n_steps, n_before) = (r.len(), a_before.len());
        let n_p = enough(p.len(), n_steps, a, a_before)?;
        let v = Vectors::new(self, &p[..n_p], r, None)?;
        need("x", v.n, x.len())?;
        let b = v.coefficients(|l, j| if l < n_before && j < n_steps { b[(l, j)] } else { 0.0 });
        let rows = [a, a_before];
        let a = v.coefficients(|i, j| rows.get(i).and_then(|row| row.get(j)).copied().unwrap_or(0.0));
        let (n_before, n_steps) = (n_before as u32, n_steps as u32);
        let arguments = (x.write(), v.fields, b, a, n_before, n_steps, v.n as u64);
        let (kernel, launch) =
            (Kernel::<Update<T>>::new("s_step_update"), Launch::line(n_tiles(v.n), SUM_THREADS));
        // SAFETY: x and as many vectors as are read and written have n entries.
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
