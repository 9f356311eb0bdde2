//! The emulator itself: sound kernels pass, and of each kind of unsound ones a mutant is caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use femtile::device::cuda::{Kernel, Launch, Program, Read, Write};
use femtile::device::{Buffer, Cuda, DeviceError};
use femtile_conformance::emulator::{Emulator, without_barrier};
use femtile_conformance::suite::block_tridiagonal::BlockScope;
use femtile_conformance::suite::formats::FormatScope;
use femtile_conformance::suite::{self, Scope};

static KERNELS: Program = Program { name: "sound", source: include_str!("emulator/sound.cu"), headers: &[] };
type OneArray = (Write<f64>, Read<f64>, u32);

/// A device whose sources are changed, or nothing where there is no C++ compiler.
fn gpu(change: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Option<Cuda> {
    match Emulator::new() {
        Ok(emulator) => Some(Cuda::with_driver(Arc::new(emulator.mutate(change)))),
        Err(error) => {
            eprintln!("SKIPPED: kernels on the emulator: {error}");
            None
        }
    }
}

/// Launches a kernel of `sound.cu` on arrays of 128 ones, with one text replaced by another.
fn run(name: &'static str, launch: Launch, (from, to): (&'static str, &'static str)) -> Option<Outcome> {
    let device = gpu(move |_, text| text.replace(from, to))?;
    assert!(from.is_empty() || KERNELS.source.contains(from), "{from} is not in the source");
    let x = Buffer::from_vec(&device, vec![1.0f64; 128]).unwrap();
    let mut y = Buffer::<f64, _>::zeros(&device, 128).unwrap();
    // SAFETY: the emulator checks what the kernel touches before it does.
    let done = unsafe {
        let arguments = (y.write(), x.read(), 128);
        device.launch(&KERNELS.of::<f64>(), &Kernel::<OneArray>::new(name), launch, arguments)
    };
    Some(done.map(|()| y.to_host().unwrap()))
}

type Outcome = Result<Vec<f64>, DeviceError>;
const SAME: (&str, &str) = ("", "");

fn caught(name: &'static str, launch: Launch, mutation: (&'static str, &'static str), report: &str) {
    if let Some(sound) = run(name, launch, SAME) {
        sound.unwrap_or_else(|error| panic!("{name} is sound: {error}"));
    }
    if let Some(mutant) = run(name, launch, mutation) {
        let said = mutant.expect_err(&format!("{name} with {mutation:?} is unsound")).to_string();
        assert!(said.contains(name) && said.contains(report), "{mutation:?}: {said}");
    }
}

#[test]
fn sound_kernels_compute_what_they_should() {
    let first = |name, launch| run(name, launch, SAME).map(|done| done.unwrap()[0]);
    assert!(first("reverse", Launch::line(1, 128)).is_none_or(|y| y == 1.0));
    assert!(first("reduce", Launch::line(1, 128)).is_none_or(|y| y == 128.0));
    assert!(first("dynamic", Launch::line(1, 128).shared(1024)).is_none_or(|y| y == 2.0));
    assert!(first("count", Launch::line(4, 32)).is_none_or(|y| y == 128.0));
    assert!(first("warps", Launch::line(1, 64)).is_none_or(|y| y == 32.0));
    assert!(first("total", Launch::line(4, 32)).is_none_or(|y| y == 128.0));
}

#[test]
fn accesses_outside_arrays_are_caught() {
    let launch = Launch::line(1, 128);
    caught(
        "reverse",
        launch,
        ("x[n - 1 - i]", "x[n - i]"),
        "out of bounds: reads byte 1024 of a buffer of 1024",
    );
    caught("reverse", launch, ("y[i] = ", "y[i + 1] = "), "out of bounds: writes byte 1024");
    caught("reverse", launch, ("y[i] = ", "y[i - 1] = "), "out of bounds: writes");
    caught("dynamic", launch.shared(1024), ("tile[i]", "tile[i + 1]"), "out of bounds");
}

#[test]
fn null_pointers_and_freed_arrays_are_caught() {
    let Some(device) = gpu(|_, text| text.into()) else { return };
    let kernel = Kernel::<OneArray>::new("reverse");
    let mut y = Buffer::<f64, _>::zeros(&device, 128).unwrap();
    let freed = Buffer::<f64, _>::zeros(&device, 128).unwrap().read();
    for (from, report) in [(Read::none(), "a null pointer"), (freed, "that was freed")] {
        // SAFETY: the emulator checks what the kernel touches before it does.
        let done = unsafe {
            device.launch(&KERNELS.of::<f64>(), &kernel, Launch::line(1, 128), (y.write(), from, 128))
        };
        let said = done.unwrap_err().to_string();
        assert!(said.contains(report), "{said}");
    }
}

#[test]
fn shared_memory_that_was_never_written_is_caught() {
    caught(
        "reduce",
        Launch::line(1, 128),
        ("tile[i] = x[i];", "if (i > 3) tile[i] = x[i];"),
        "never written",
    );
}

#[test]
fn races_between_threads_are_caught() {
    let launch = Launch::line(1, 128);
    caught("reduce", launch, ("    __syncthreads();  // between", "    // between"), "race");
    caught("reduce", launch, ("    __syncthreads();  // first", "    // first"), "never written");
    caught("warps", Launch::line(1, 64), ("__syncwarp();", ""), "never written");
    caught("count", Launch::line(4, 32), ("atomicAdd(&y[0], 1.0)", "y[0] += 1.0"), "race");
}

#[test]
fn barriers_that_not_all_reach_are_caught() {
    let launch = Launch::line(1, 128);
    caught(
        "reduce",
        launch,
        ("    __syncthreads();  // first", "    if (i < 64) __syncthreads();"),
        "barrier",
    );
    caught("reduce", launch, ("tile[i] = x[i];", "if (i == 77) return; tile[i] = x[i];"), "has ended");
}

#[test]
fn lanes_that_do_not_take_part_are_caught() {
    let launch = Launch::line(1, 64);
    caught("warps", launch, ("FULL_WARP, sum, half", "0xffff0000u, sum, half"), "not in its mask");
    caught(
        "warps",
        launch,
        ("double sum = tile[i];", "if (i % 32 == 5) return; double sum = tile[i];"),
        "do not come",
    );
    let mutation = (
        "sum += __shfl_down_sync(FULL_WARP, sum, half);",
        "if (i % 32 < 16) sum += __shfl_down_sync(0xffffu, sum, half);",
    );
    caught("warps", launch, mutation, "does not take part");
}

#[test]
fn races_between_blocks_are_caught() {
    let launch = Launch::line(4, 32);
    caught("total", launch, ("__threadfence();", ""), "block");
    caught("total", launch, ("y[1 + blockIdx.x] = sum;", "y[1] = sum;"), "race");
    let mutation = ("atomicAdd(&y[127], 1.0) == 3.0", "blockIdx.x == 3");
    caught("total", launch, mutation, "race");
}

/// Headers of tridiagonal kernels.
const TRIDIAGONAL_HEADERS: [&str; 5] =
    ["lines.cuh", "equation.cuh", "chunk.cuh", "lanes.cuh", "exchange.cuh"];

/// Kernels and headers of sparse formats that have barriers.
const SPARSE_FORMATS: [&str; 3] = ["segmented.cuh", "coo.cu", "merge.cu"];
/// The few matrices that these are tried with.
const TINY_FORMATS: FormatScope = FormatScope { sizes: &[257], long_row: 0 };

/// Returns the finding of the suite on the shipped kernel `name` with changed source; none if it finds nothing wrong.
fn complaint(name: &str, change: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Option<String> {
    let device = gpu(change)?;
    let scope =
        Scope { sizes: &[8195], side: 12, lengths: &[36, 150], sparse_sizes: &[33], has_every_kind: false };
    let work = || {
        if name.starts_with("tridiagonal") || TRIDIAGONAL_HEADERS.contains(&name) {
            suite::tridiagonal::every_algorithm_solves_dominant_systems(&device, &scope);
            suite::tridiagonal::lines_that_fail_are_named_and_the_others_solved(&device, &scope);
            return;
        }
        if name.starts_with("block") {
            let scope = BlockScope { sizes: &[], blocks: &[3] };
            suite::block_tridiagonal::solving_in_place_gives_the_same_bits(&device, &scope);
            return;
        }
        if name == "amg_patches.cu" {
            suite::amg::cycles_with_patches_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "amg_patch_layout.cu" {
            suite::amg_levels::patched_levels_are_what_they_are_defined_to_be(&device, &scope);
            return;
        }
        if name == "amg_tail.cu" {
            suite::amg::cycles_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "eigen.cu" {
            suite::eigen::products_of_sets_of_vectors_agree_with_plain_loops(&device, &scope);
            return;
        }
        if name == "amg_nodes.cu" {
            suite::amg_nodes::levels_of_nodes_are_what_they_are_defined_to_be(&device, &scope);
            return;
        }
        if name.starts_with("amg_") {
            suite::amg_levels::levels_are_what_they_are_defined_to_be(&device, &scope);
            return;
        }
        if name == "ell_warp_slices.cu" || name == "scan.cu" {
            suite::ell_warp::conversion_of_many_rows_gives_the_arrays_of_the_host(&device, &scope);
            return;
        }
        if name.starts_with("ell_warp") {
            suite::ell_warp::lanes_added_in_shared_memory_agree_with_csr(&device, &scope);
            return;
        }
        if name == "pattern.cu" {
            suite::assembly::a_node_with_many_cells_agrees_with_the_reference(&device, &scope);
            return;
        }
        if name == "assembly_nonzeros.cu" {
            suite::refill::patches_that_meet_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "assembly_patches.cu" {
            suite::patch_assembly::patches_share_rows_that_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "hexahedra.cuh" {
            suite::matrix_free::products_agree_with_the_definition(&device, &scope);
            suite::matrix_free::merged_cg_goes_the_way_of_plain_cg(&device, &scope);
            return;
        }
        if name == "quadrilaterals.cuh" {
            suite::quadrilaterals::products_on_quadrilaterals_agree_with_the_definition(&device, &scope);
            return;
        }
        if name == "form_products.cu" {
            suite::tangents::residuals_of_forms_agree_with_the_processor(&device, &scope);
            // u at the points, from which matrices are computed.
            suite::tangents::matrices_of_forms_agree_with_the_processor(&device, &scope);
            return;
        }
        if name == "form_matrix.cu" {
            suite::tangents::matrices_of_forms_agree_with_the_processor(&device, &scope);
            return;
        }
        if name == "simplices.cu" {
            suite::tangents::tangents_on_simplices_agree_with_the_processor(&device, &scope);
            return;
        }
        if name == "point_tangent.cuh" {
            suite::tangents::tangents_agree_with_the_processor(&device, &scope);
            return;
        }
        if name == "fields.cuh" {
            suite::vector_fields::components_agree_with_the_processor(&device, &scope);
            return;
        }
        if name == "matrix_free_diagonal.cu" {
            suite::matrix_free::products_agree_with_the_definition(&device, &scope);
            return;
        }
        if name == "degree_transfer.cu" {
            suite::degree_transfer::transfers_agree_with_those_of_the_processor(&device, &scope);
            return;
        }
        if name == "vertex_patch_published.cu" {
            suite::box_multigrid::published_kernels_agree_with_the_fused_kernel(&device, &scope);
            return;
        }
        if name == "vertex_patch_additive.cu" {
            suite::box_multigrid::steps_on_mapped_cells_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "vertex_patch_exact.cu" {
            suite::box_multigrid::steps_on_mapped_cells_agree_with_the_reference(&device, &scope);
            return;
        }
        if name.starts_with("vertex_patch") {
            suite::box_multigrid::all_ways_to_solve_on_patches_agree(&device, &scope);
            return;
        }
        if name == "box_stencil.cu" {
            suite::box_multigrid::all_ways_to_solve_on_patches_agree(&device, &scope);
            suite::box_multigrid::residuals_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "box_operator.cu" {
            suite::box_multigrid::residuals_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "box_mapped.cu" {
            suite::box_multigrid::residuals_on_mapped_cells_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "plane_operator.cu" || name == "plane_mapped.cu" {
            suite::box_multigrid::residuals_in_the_plane_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "plane_transfer.cu" {
            suite::box_multigrid::transfers_in_the_plane_keep_functions_and_integrals(&device, &scope);
            return;
        }
        if name == "plane_patch.cu" {
            suite::box_multigrid::steps_in_the_plane_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "plane_corrections.cu" {
            suite::box_multigrid::surrogates_in_the_plane_agree_with_the_reference(&device, &scope);
            return;
        }
        if name == "box_transfer.cu" {
            suite::box_multigrid::transfers_keep_functions_and_integrals(&device, &scope);
            return;
        }
        if name == "several_sums.cuh" {
            suite::cg_variants::passes_over_blocks_agree_with_the_reference(&device, &scope);
            return;
        }
        if SPARSE_FORMATS.contains(&name) {
            suite::formats::products_of_every_format_agree_with_the_reference(&device, &TINY_FORMATS);
            return;
        }
        suite::vector::vector_kernels_agree_with_the_reference(&device, &scope);
        suite::cg::cg_agrees_with_the_reference(&device, &scope);
        suite::headers::a_padded_tile_transposes(&device, &scope);
        suite::headers::copies_under_way_arrive_when_they_are_waited_for(&device, &scope);
        suite::csr::csr_products_agree_with_the_reference(&device, &Scope { sizes: &[1100], ..scope });
    };
    let panic = catch_unwind(AssertUnwindSafe(work)).err()?;
    Some(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "no text".into()))
}

#[test]
fn copies_that_are_not_waited_for_are_caught() {
    let mutants = [
        ("wait_for_copies<1>", "wait_for_copies<2>", "never written"),
        ("        wait_for_copies<1>();\n", "", "never written"),
        (
            "copy_async(&tiles[0][i], &x[i]);\n    commit_copies();",
            "copy_async(&tiles[0][i], &x[i]);",
            "never written",
        ),
        ("&x[64 * (tile + 1) + i]", "&x[64 * (tile + 2) + i]", "out of bounds"),
        ("&tiles[(tile + 1) % 2][i]", "&tiles[tile + 1][i]", "out of bounds"),
    ];
    for (from, to, report) in mutants {
        let Some(device) = gpu(move |_, text| text.replace(from, to)) else { return };
        let work =
            || suite::headers::copies_under_way_arrive_when_they_are_waited_for(&device, &suite::SMALL);
        let panic = catch_unwind(AssertUnwindSafe(work)).expect_err(from);
        let said = panic.downcast_ref::<String>().unwrap();
        assert!(said.contains(report), "{to}: {said}");
    }
}

/// Every barrier and fence of the shipped kernels is needed, and its absence is seen: none is left out unnoticed.
#[test]
fn every_barrier_left_out_of_a_shipped_kernel_is_caught() {
    if gpu(|_, text| text.into()).is_none() {
        return;
    }
    let programs = femtile_conformance::specialisations(true);
    let mut texts: Vec<(String, String)> = Vec::new();
    for program in &programs {
        let source = (format!("{}.cu", program.program().name), program.program().source.to_string());
        let headers = program.headers().map(|(name, text)| (name.to_string(), text.to_string()));
        texts.extend(std::iter::once(source).chain(headers));
    }
    texts.sort();
    texts.dedup();
    let mut n_mutants = 0;
    for (name, text) in texts {
        for index in 0.. {
            let Some(mutant) = without_barrier(&text, index) else { break };
            n_mutants += 1;
            let (file, sound) = (name.clone(), text.clone());
            let said =
                complaint(
                    &name,
                    move |name, text| {
                        if name == file && text == sound { mutant.clone() } else { text.into() }
                    },
                );
            let said = said.unwrap_or_else(|| panic!("barrier {index} of {name} is left out unnoticed"));
            let reports = ["race", "barrier", "never written"];
            assert!(reports.iter().any(|report| said.contains(report)), "{name}, barrier {index}: {said}");
        }
    }
    assert!(n_mutants >= 5, "{n_mutants} barriers were found");
}
