//! The headers that kernels share.

use femtile::device::cuda::{
    COPY_HEADER, Kernel, Launch, MMA_HEADER, Program, Read, Specialisation, TILE_HEADER, Write,
};
use femtile::device::{Buffer, Cuda};

use super::Scope;
use super::problems::Random;
use super::vector::nan;

static HEADERS: Program = Program {
    name: "headers",
    source: include_str!("headers.cu"),
    headers: &[COPY_HEADER, MMA_HEADER, TILE_HEADER],
};

fn program(k: usize) -> Specialisation {
    HEADERS.of::<f64>().define("FEMTILE_K", k)
}

/// The programs of these checks.
pub fn specialisations() -> Vec<Specialisation> {
    [4, 8, 16].map(program).to_vec()
}

/// Products of 16 × K by K × 8 matrices are those of three loops, for each K that tensor cores know.
pub fn products_of_a_warp_agree_with_plain_loops(device: &Cuda, _: &Scope) {
    for k in [4, 8, 16] {
        let mut random = Random::new(k as u64);
        let (a, b): (Vec<f64>, Vec<f64>) = (random.vector(16 * k), random.vector(k * 8));
        let c: Vec<f64> = random.vector(16 * 8);
        let (on_a, on_b) = (Buffer::from_host(device, &a).unwrap(), Buffer::from_host(device, &b).unwrap());
        let mut found = Buffer::from_host(device, &c).unwrap();
        let kernel = Kernel::<(Write<f64>, Read<f64>, Read<f64>)>::new("multiply");
        let arguments = (found.write(), on_a.read(), on_b.read());
        // SAFETY: the arrays have the sizes that the kernel states.
        unsafe { device.launch(&program(k), &kernel, Launch::line(1, 32), arguments) }.unwrap();
        let found = found.to_host().unwrap();
        for (place, found) in found.iter().enumerate() {
            let (row, column) = (place / 8, place % 8);
            let terms = (0..k).map(|i| a[row * k + i] * b[i * 8 + column]);
            let expected = c[place] + terms.sum::<f64>();
            assert!((found - expected).abs() < 1e-14, "K = {k}, ({row}, {column}): {found} {expected}");
        }
    }
}

/// A tile read by columns after it was written by rows holds the transpose.
pub fn a_padded_tile_transposes(device: &Cuda, _: &Scope) {
    let x: Vec<f64> = Random::new(1).vector(32 * 32);
    let from = Buffer::from_host(device, &x).unwrap();
    let mut to = nan(device, 32 * 32);
    let kernel = Kernel::<(Write<f64>, Read<f64>)>::new("transpose");
    let launch = Launch { block: [32, 8, 1], ..Launch::line(1, 1) };
    // SAFETY: both arrays are 32 × 32.
    unsafe { device.launch(&program(4), &kernel, launch, (to.write(), from.read())) }.unwrap();
    let found = to.to_host().unwrap();
    assert!((0..1024).all(|i| found[i] == x[i % 32 * 32 + i / 32]));
}

/// Asynchronous copies are complete after the wait, while another tile is summed.
pub fn copies_under_way_arrive_when_they_are_waited_for(device: &Cuda, _: &Scope) {
    for n_tiles in [1, 2, 5] {
        let x: Vec<f64> = Random::new(n_tiles).vector(64 * n_tiles as usize);
        let from = Buffer::from_host(device, &x).unwrap();
        let mut to = nan(device, x.len());
        let kernel = Kernel::<(Write<f64>, Read<f64>, u32)>::new("stage");
        let arguments = (to.write(), from.read(), n_tiles as u32);
        // SAFETY: both arrays hold that many tiles of 64 entries.
        unsafe { device.launch(&program(4), &kernel, Launch::line(1, 64), arguments) }.unwrap();
        let expected: Vec<f64> = (0..x.len()).map(|i| x[i] + 2.0 * x[i / 64 * 64 + 63 - i % 64]).collect();
        assert_eq!(to.to_host().unwrap(), expected);
    }
}
