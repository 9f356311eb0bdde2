//! The emulator at the corners of its rules: what is sound there passes, what is not is named.

use std::sync::Arc;

use femtile::device::cuda::{Driver, Kernel, Launch, Program, Read, Write};
use femtile::device::{Buffer, Cuda, DeviceError};
use femtile_conformance::emulator::{Emulator, without_barrier};

static CORNERS: Program =
    Program { name: "corners", source: include_str!("emulator/corners.cu"), headers: &[] };
const N: usize = 128;
type OneArray = (Write<f64>, Read<f64>, u32);
type Outcome = Result<Vec<f64>, DeviceError>;

/// An emulator, or a message that the test is skipped.
fn emulator(test: &str) -> Option<Emulator> {
    Emulator::new().inspect_err(|error| eprintln!("SKIPPED: {test}: {error}")).ok()
}

/// Launches a kernel of `corners.cu` on the numbers from 1 on, and brings what it wrote.
fn run_on(emulator: Emulator, name: &'static str, launch: Launch, n: u32) -> Outcome {
    let device = Cuda::with_driver(Arc::new(emulator));
    let numbers: Vec<f64> = (1..=N).map(|i| i as f64).collect();
    let x = Buffer::from_vec(&device, numbers).unwrap();
    let mut y = Buffer::from_vec(&device, vec![f64::NAN; N]).unwrap();
    // SAFETY: the emulator checks what the kernel touches before it does.
    unsafe {
        device.launch(&CORNERS.of::<f64>(), &Kernel::<OneArray>::new(name), launch, (y.write(), x.read(), n))
    }?;
    Ok(y.to_host().unwrap())
}

/// The kernel passes, and with one text in the place of another it is caught with a report that holds `report`.
fn caught(name: &'static str, launch: Launch, (from, to): (&'static str, &'static str), report: &str) {
    let Some(sound) = emulator(name) else { return };
    run_on(sound, name, launch, N as u32).unwrap_or_else(|error| panic!("{name} is sound: {error}"));
    assert!(CORNERS.source.contains(from), "{from} is not in the source");
    let mutant = emulator(name).unwrap().mutate(move |_, text| text.replacen(from, to, 1));
    let said = run_on(mutant, name, launch, N as u32).expect_err(&format!("{name} with {to}")).to_string();
    assert!(said.contains(report), "{name} with {to}: {said}");
}

const BLOCK: fn() -> Launch = || Launch::line(1, 64);

#[test]
fn a_shared_array_does_not_reach_into_its_neighbour() {
    for (from, to) in [("left[i] = x[i]", "left[i + 1] = x[i]"), ("right[63 - i]", "right[62 - i]")] {
        caught("beside", BLOCK(), (from, to), "out of bounds");
    }
    caught("beside", BLOCK(), ("left[63 - i]", "left[64 - i]"), "bytes beside shared arrays");
}

#[test]
fn bytes_of_one_word_are_told_apart() {
    caught("bytes", BLOCK(), ("flags[i ^ 3] = 2", "flags[i ^ 32] = 2"), "race");
    caught("bytes", BLOCK(), ("    __syncwarp();\n    flags", "    flags"), "race");
}

#[test]
fn a_barrier_of_some_lanes_orders_these_alone() {
    caught("halves", BLOCK(), ("tile[i ^ 15]", "tile[i ^ 31]"), "race");
    caught("halves", BLOCK(), ("__syncwarp(half)", "if (i % 32 < 16) __syncwarp(half)"), "race");
}

#[test]
fn lanes_that_have_met_may_overwrite_what_all_have_read() {
    caught(
        "overwritten",
        BLOCK(),
        ("    __syncwarp();\n    if (i % 32 == 31)", "    if (i % 32 == 31)"),
        "race",
    );
    caught("overwritten", BLOCK(), ("    __syncwarp();\n    y[i]", "    y[i]"), "race");
    let shuffled = (
        "    __syncwarp();\n    if (i % 32 == 31)",
        "    __ballot_sync(FULL_WARP, 1);\n    if (i % 32 == 31)",
    );
    caught("overwritten", BLOCK(), shuffled, "race");
}

#[test]
fn threads_meet_at_one_barrier_and_not_at_two() {
    caught("branches", BLOCK(), ("if (n > 3)", "if (i > 3)"), "barrier: is at another one");
}

#[test]
fn packs_lie_at_multiples_of_their_size() {
    caught(
        "packs",
        BLOCK(),
        ("store_pack(y", "store_pack(y + 1"),
        "misaligned for its type: byte 8 of a buffer of 1024 bytes (argument 0)",
    );
}

#[test]
fn what_other_blocks_have_read_is_not_overwritten_in_any_order_of_blocks() {
    for seed in 0..8 {
        let Some(sound) = emulator("what_other_blocks_have_read") else { return };
        run_on(sound.with_seed(seed), "common", Launch::line(9, 1), 0).unwrap();
        let racy = emulator("")
            .unwrap()
            .with_seed(seed)
            .mutate(|_, text| text.replace("= first;", "= first;\n    if (blockIdx.x == 4) y[0] = 1.0;"));
        let said = run_on(racy, "common", Launch::line(9, 1), 0).unwrap_err().to_string();
        assert!(said.contains("race") && said.contains("no fence and atomic between"), "{said}");
    }
}

#[test]
fn no_barrier_of_a_block_sum_can_be_spared_when_another_follows() {
    let Some(sound) = emulator("no_barrier_of_a_block_sum") else { return };
    let sums = run_on(sound, "twice", Launch::line(1, 128), 0).unwrap();
    assert_eq!(sums[..2], [8256.0, 707_264.0]);
    let text = femtile::device::cuda::FEMTILE_HEADER.text;
    let (mut n_needed, mut index) = (0, 0);
    while let Some(mutant) = without_barrier(text, index) {
        let begin = text.find("double block_sum(").unwrap();
        let end = begin + text[begin..].find("\n}").unwrap();
        index += 1;
        if mutant[..begin] != text[..begin] || !mutant.ends_with(&text[end..]) {
            continue;
        }
        n_needed += 1;
        let emulator = emulator("").unwrap();
        let emulator = emulator
            .mutate(move |name, text| if name == "femtile.cuh" { mutant.clone() } else { text.into() });
        let said = run_on(emulator, "twice", Launch::line(1, 128), 0).unwrap_err().to_string();
        assert!(said.contains("race") || said.contains("never written"), "{said}");
    }
    assert!(n_needed >= 2, "{n_needed} barriers in block_sum");
}

#[test]
fn threads_and_blocks_have_their_places_in_three_dimensions() {
    let Some(emulator) = emulator("threads_and_blocks_have_their_places") else { return };
    let launch = Launch { grid: [2, 1, 2], block: [3, 4, 2], shared_bytes: 0 };
    let found = run_on(emulator, "places", launch, 0).unwrap();
    for (i, found) in found[..96].iter().enumerate() {
        assert_eq!(*found, i as f64 + 12_000.0 + 1e6 + 1e7);
    }
    assert!(found[96..].iter().all(|found| found.is_nan()));
}

#[test]
fn shuffles_stay_in_their_groups_of_lanes() {
    let Some(emulator) = emulator("shuffles_stay_in_their_groups_of_lanes") else { return };
    let device = Cuda::with_driver(Arc::new(emulator));
    let x = Buffer::from_vec(&device, (0..N).map(|i| i as f64).collect()).unwrap();
    let mut y = Buffer::<f64, Cuda>::zeros(&device, N).unwrap();
    let kernel = Kernel::<OneArray>::new("shuffles");
    for (width, kind, operand) in
        (0..6).flat_map(|w| (0..4).flat_map(move |kind| (0..32).map(move |operand| (1 << w, kind, operand))))
    {
        let n = kind + 4 * operand + 128 * width;
        // SAFETY: the emulator checks what the kernel touches before it does.
        unsafe { device.launch(&CORNERS.of::<f64>(), &kernel, BLOCK(), (y.write(), x.read(), n)) }.unwrap();
        let found = y.to_host().unwrap();
        for i in 0..64u32 {
            let (lane, group) = (i % 32, i % 32 / width * width);
            let source = match kind {
                0 => group + operand % width,
                1 => {
                    if lane >= group + operand {
                        lane - operand
                    } else {
                        lane
                    }
                }
                2 => {
                    if lane + operand < group + width {
                        lane + operand
                    } else {
                        lane
                    }
                }
                _ => {
                    if lane ^ operand < group + width {
                        lane ^ operand
                    } else {
                        lane
                    }
                }
            };
            assert_eq!(found[i as usize], f64::from(i / 32 * 32 + source), "{width} {kind} {operand} {i}");
            let (votes, any, all) = if i < 32 { (11.0, 0.0, 1.0) } else { (11.0, 1.0, 0.0) };
            assert_eq!(
                found[64 + i as usize],
                votes + 100.0 * any + 1000.0 * all - f64::from(i >= 32 && i % 96 > 95)
            );
        }
    }
}

#[test]
fn atomic_operations_and_functions_are_those_of_cuda() {
    let Some(emulator) = emulator("atomic_operations_and_functions_are_those_of_cuda") else { return };
    let found = run_on(emulator, "operations", BLOCK(), 0).unwrap();
    assert_eq!(found[..8], [2016.0, -64.0, 63.0, -63.0, 255.0, 12.0, 64.0, 9.0]);
    assert_eq!(found[8..12], [5.0, 0.75 + 2.0 + 3.5 + 7.0, 2.0, 1.5 + 31.0 + 4.0 + 3.0]);
}

#[test]
fn another_seed_gives_another_order_of_blocks_and_the_same_seed_the_same() {
    let last = |seed: u64| {
        let device = Cuda::with_driver(Arc::new(emulator("another_seed")?.with_seed(seed)));
        let mut last = Buffer::<u32, Cuda>::zeros(&device, 1).unwrap();
        let kernel = Kernel::<(Write<u32>, u64)>::new("order");
        // SAFETY: the kernel writes the one entry.
        unsafe { device.launch(&CORNERS.of::<f64>(), &kernel, Launch::line(1000, 1), (last.write(), 0)) }
            .unwrap();
        Some(last.to_host().unwrap()[0])
    };
    let Some(first) = last(1) else { return };
    assert_eq!(last(1), Some(first));
    assert!((2..6).any(|seed| last(seed) != Some(first)));
}

#[test]
fn a_thread_that_waits_for_another_block_is_ended() {
    let text = ("if (i < 8) y[i]", "while (atomicAdd(&large, 0) != 1000) {}\n    if (i < 8) y[i]");
    caught("operations", BLOCK(), text, "again and again");
}

#[test]
fn memory_that_nobody_wrote_is_neither_read_by_kernels_nor_copied() {
    let Some(emulator) = emulator("memory_that_nobody_wrote") else { return };
    let (to, from) = (emulator.allocate(8 * N).unwrap(), emulator.allocate(8 * N).unwrap());
    // SAFETY: the emulator checks what is touched before it does.
    unsafe { emulator.upload(from, &vec![0; 8 * (N - 1)]) }.unwrap();
    let signature = Kernel::<OneArray>::new("packs").signature();
    let function = emulator.function(&CORNERS.of::<f64>(), "packs", &signature).unwrap();
    let launch = |n: u32| {
        let arguments = [&to.to_ne_bytes()[..], &from.to_ne_bytes(), &n.to_ne_bytes()];
        // SAFETY: the emulator checks what the kernel touches before it does.
        unsafe { emulator.launch(function, &BLOCK(), &arguments) }
    };
    launch(126).unwrap();
    let said = launch(128).unwrap_err().to_string();
    assert!(
        said.contains("byte 1016 of a buffer of 1024 bytes (argument 1), which was never written"),
        "{said}"
    );
    let fresh = emulator.allocate(16).unwrap();
    // SAFETY: the emulator checks what is touched before it does.
    let said = unsafe { emulator.download(&mut [0; 16], fresh) }.unwrap_err().to_string();
    assert!(said.contains("byte 0 of 16 was never written"), "{said}");
}

#[test]
fn only_launches_are_recorded_and_what_else_is_asked_for_spoils_the_recording() {
    let Some(emulator) = emulator("only_launches_are_recorded") else { return };
    let array = emulator.allocate(64).unwrap();
    emulator.begin_recording().unwrap();
    // SAFETY: the emulator checks what is touched before it does.
    unsafe { assert!(emulator.zero(array, 64).is_err() && emulator.upload(array, &[1]).is_err()) };
    assert!(emulator.allocate(8).is_err() && emulator.synchronize().is_err());
    assert!(emulator.end_recording().is_err());
    // SAFETY: the emulator checks what is touched before it does.
    unsafe { emulator.zero(array, 64) }.unwrap();
    emulator.begin_recording().unwrap();
    let graph = emulator.end_recording().unwrap();
    // SAFETY: the emulator checks that the graph is its own, and refuses others.
    unsafe {
        emulator.replay(graph).unwrap();
        emulator.forget(graph);
        assert!(emulator.replay(graph).is_err());
    }
    assert!(emulator.end_recording().is_err());
}

#[test]
fn blocks_larger_than_a_gpu_has_them_are_refused() {
    for launch in [Launch::line(1, 1025), Launch::line(1, 32).shared(300_000), Launch::line(1, 0)] {
        let Some(emulator) = emulator("blocks_larger_than_a_gpu_has_them") else { return };
        let error = run_on(emulator, "packs", launch, 2).unwrap_err();
        assert!(matches!(error, DeviceError::Launch { .. }), "{error}");
    }
}

#[test]
fn emulators_in_several_threads_do_not_disturb_each_other() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let Some(emulator) = emulator("emulators_in_several_threads") else { return };
                    let sums = run_on(emulator, "twice", Launch::line(1, 128), 0).unwrap();
                    assert_eq!(sums[..2], [8256.0, 707_264.0]);
                }
            });
        }
    });
}
