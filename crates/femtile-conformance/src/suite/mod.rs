//! The conformance suite of all devices; tests instantiate it for the CPU, emulated CUDA and a real GPU.

pub mod activation;
pub mod adi;
pub mod amg;
pub mod amg_levels;
pub mod amg_nodes;
pub mod amg_partitions;
pub mod amg_quality;
pub mod assembly;
pub mod block_tridiagonal;
pub mod box_multigrid;
pub mod cell_sums;
pub mod cg;
pub mod cg_solver;
pub mod cg_variants;
pub mod csr;
pub mod degree_transfer;
pub mod eigen;
pub mod ell_warp;
pub mod formats;
pub mod forms;
pub mod headers;
pub mod in_time;
pub mod ionic;
pub mod matrix_free;
pub mod memory;
pub mod merged_cg;
pub mod parts_of_boxes;
pub mod patch_assembly;
pub mod problems;
pub mod quadrilaterals;
pub mod rank_rows;
pub mod ranks;
pub mod refill;
pub mod samples;
pub mod tangents;
pub mod tridiagonal;
pub mod vector;
pub mod vector_fields;

use femtile::linalg::krylov::cg::CgKernels;
use femtile::linalg::sparse::csr::CsrKernels;
use femtile::linalg::sparse::ell_warp::EllWarpKernels;
use femtile::linalg::vector::VectorKernels;

/// A device with all kernels of linear algebra in both precisions.
pub trait LinearDevice: CgKernels<f64> + CgKernels<f32> + CsrKernels<f64> + CsrKernels<f32> {}

impl<D> LinearDevice for D where D: CgKernels<f64> + CgKernels<f32> + CsrKernels<f64> + CsrKernels<f32> {}

/// A device with the kernels of ELL-WARP in every precision.
pub trait SparseDevice:
    LinearDevice
    + VectorKernels<f64>
    + VectorKernels<f32>
    + EllWarpKernels<f64, f64>
    + EllWarpKernels<f32, f32>
    + EllWarpKernels<f64, f32>
{
}

impl<D> SparseDevice for D where
    D: LinearDevice
        + VectorKernels<f64>
        + VectorKernels<f32>
        + EllWarpKernels<f64, f64>
        + EllWarpKernels<f32, f32>
        + EllWarpKernels<f64, f32>
{
}

/// Sizes of the problems of a run: an emulator takes a thousand times as long as a processor.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// Lengths of vectors and numbers of rows.
    pub sizes: &'static [usize],
    /// Points on a side of the grid that systems are solved on.
    pub side: usize,
    /// Lengths of tridiagonal systems.
    pub lengths: &'static [usize],
    /// Numbers of rows of sparse matrices in each format.
    pub sparse_sizes: &'static [usize],
    /// True if each kind of coefficient is also tested alone: each is a program that has to be compiled.
    pub has_every_kind: bool,
}

/// Lengths that no lane width, block or thread count divides evenly, and those next to them.
pub const FULL: Scope = Scope {
    sizes: &[0, 1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 255, 256, 257, 4095, 4096, 4097, 10_007, 40_961],
    side: 37,
    lengths: &[1, 2, 3, 5, 31, 32, 33, 64, 100, 127, 128, 257],
    sparse_sizes: &[0, 1, 31, 33, 1027],
    has_every_kind: true,
};

/// The same for an emulator.
pub const SMALL: Scope = Scope {
    sizes: &[0, 1, 2, 3, 31, 257, 4095, 4096, 8195],
    side: 19,
    lengths: &[1, 2, 3, 5, 33, 64],
    sparse_sizes: &[0, 1, 33, 257],
    has_every_kind: false,
};

/// Instantiates the checks of linear algebra as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! linear_algebra {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            vector: vector_kernels_agree_with_the_reference, vectors_of_different_length_are_refused;
            eigen: products_of_sets_of_vectors_agree_with_plain_loops, sets_that_do_not_fit_are_refused;
            csr: csr_products_agree_with_the_reference, matrices_of_one_pattern_are_combined, jacobi_divides_by_the_diagonal,
                jacobi_names_the_row_whose_diagonal_is_not_positive;
            cg: cg_agrees_with_the_reference, flexible_cg_is_cg_where_nothing_changes, a_zero_right_side_gives_zero_at_once, a_good_start_ends_at_once,
                every_stop_keeps_the_iterate_that_it_reports, an_indefinite_matrix_breaks_down_with_numbers,
                how_often_the_host_looks_changes_nothing, a_right_side_that_is_not_finite_breaks_down_at_once,
                right_sides_of_any_size_are_solved;
            cg_solver: two_solutions_are_extrapolated, solves_begin_with_the_line_through_two_solutions,
                iterations_may_have_another_operator,
                kept_solves_have_the_bits_of_single_ones, kept_solves_take_any_number_of_unknowns,
                unusual_right_sides_leave_a_solver_as_it_was, kept_solves_end_as_single_ones,
                a_monitor_ends_a_kept_solve, targets_are_tolerances_of_the_right_side,
                vectors_of_a_solver_may_be_replaced, a_solver_takes_other_operators;
        }
    };
}

/// Instantiates the checks of merged conjugate gradients as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! merged_cg {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            merged_cg: merged_cg_agrees_with_plain_cg, an_almost_exact_step_claims_nothing,
                merged_cg_ends_at_once_where_it_can, merged_cg_returns_the_iterate_that_it_reports,
                merged_cg_breaks_down_with_numbers, merged_cg_refuses_what_is_no_diagonal;
        }
    };
}

/// Instantiates the checks of pipelined and s-step conjugate gradients as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! cg_variants {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            cg_variants: variants_agree_with_plain_cg_and_the_processor, variants_give_the_same_bits_twice,
                variants_end_with_an_outcome, passes_over_blocks_agree_with_the_reference,
                blocks_that_do_not_fit_are_refused;
        }
    };
}

/// Instantiates the checks of sparse formats as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! sparse {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            ell_warp: ell_warp_products_agree_with_csr, far_columns_are_kept_in_full, long_rows_agree_with_csr,
                lanes_added_in_shared_memory_agree_with_csr, ell_warp_takes_new_values,
                values_of_slices_are_rounded,
                lanes_without_a_product_are_refused, conversion_on_a_device_gives_the_arrays_of_the_host,
                conversion_of_many_rows_gives_the_arrays_of_the_host,
                a_nan_reaches_no_row_without_it, cg_runs_on_ell_warp;
        }
    };
}

/// Instantiates the checks of tridiagonal systems as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! tridiagonal {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            tridiagonal: every_algorithm_solves_dominant_systems, any_axis_of_any_layout_is_solved,
                periodic_systems_are_solved, pivoting_solves_systems_that_are_not_dominant, bands_may_repeat,
                bands_of_a_rule_are_those_of_arrays, lines_that_fail_are_named_and_the_others_solved,
                batches_without_entries_are_left_alone, what_does_not_fit_is_refused_with_numbers,
                one_matrix_solves_for_all_right_sides, a_singular_matrix_is_refused_with_its_row;
        }
    };
}

/// Instantiates the checks of the shared headers of kernels, for the GPUs, real or emulated, that `$devices()` gives.
#[macro_export]
macro_rules! kernel_headers {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            headers: products_of_a_warp_agree_with_plain_loops, a_padded_tile_transposes,
                copies_under_way_arrive_when_they_are_waited_for;
        }
    };
}

/// Instantiates the checks of assembly as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! assembly {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            assembly: systems_agree_with_the_reference, pure_neumann_problems_are_known_as_such,
                a_node_with_many_cells_agrees_with_the_reference,
                single_precision_is_the_rounded_double_precision, matrices_are_symmetric_to_the_bit,
                bad_cells_are_named_as_by_the_reference,
                another_mesh_and_other_constants_give_other_systems,
                forms_that_kernels_leave_to_the_host_agree_as_well;
        }
    };
}

/// Instantiates the checks of systems that are filled in again, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! refill {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            refill: one_assembly_serves_every_form_on_a_mesh, patches_that_meet_agree_with_the_reference,
                single_precision_refills_are_rounded_double_precision,
                values_are_filled_straight_into_slices, a_refused_form_leaves_an_assembly_that_works,
                a_node_with_too_many_cells_is_left_to_the_host, linearizations_agree_with_the_reference,
                bad_values_of_linearizations_are_named_as_by_the_reference;
        }
    };
}

/// Instantiates the checks of assembly by patches, for the GPUs, real or emulated, that `$devices()` gives.
#[macro_export]
macro_rules! patch_assembly {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            patch_assembly: upper_halves_agree_with_the_reference,
                patches_share_rows_that_agree_with_the_reference,
                single_precision_upper_halves_are_rounded_twice_at_most,
                bad_cells_of_patches_are_named_as_by_the_reference, conditions_and_other_meshes_are_refused,
                what_patches_leave_to_the_host_agrees_as_well;
        }
    };
}

/// Instantiates the checks of multigrid as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! multigrid {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            amg: cycles_agree_with_the_reference, cycles_do_not_depend_on_the_format_of_levels,
                levels_in_slices_are_refilled, solves_with_multigrid_converge_as_on_the_reference,
                cycles_with_patches_agree_with_the_reference, cycles_with_patches_give_the_same_bits_again,
                kept_solves_with_multigrid_have_the_bits_of_single_ones;
        }
    };
}

/// Instantiates the checks of levels that a device sets up as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! multigrid_levels {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            amg_levels: levels_are_what_they_are_defined_to_be, hierarchies_made_on_the_device_precondition,
                groups_of_a_graph_outlive_a_refill, patched_levels_are_what_they_are_defined_to_be;
            amg_nodes: levels_of_nodes_are_what_they_are_defined_to_be, badly_scaled_nodes_are_found,
                nodes_grouped_on_the_device_are_as_good_as_those_of_the_host,
                levels_above_a_known_one_are_those_of_the_host;
            amg_partitions: double_partitions_are_those_of_the_reference;
            amg_quality: groups_made_on_the_device_are_as_good_as_those_of_the_host,
                groups_follow_hidden_directions;
        }
    };
}

/// Instantiates the checks of GPUs with too little memory as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! little_memory {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            memory: arrays_without_room_go_to_the_host, hierarchies_without_room_have_the_same_bits;
        }
    };
}

/// Instantiates the checks of operators without a matrix and of transfers between their degrees, for the GPUs, real or emulated, that `$devices()` gives.
#[macro_export]
macro_rules! matrix_free {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            matrix_free: products_agree_with_the_definition, cells_with_lists_agree_with_the_definition,
                facets_are_added_to_products, all_degrees_agree_with_the_definition, cg_solves_without_a_matrix,
                data_beside_those_of_another_operator_give_its_products, merged_cg_goes_the_way_of_plain_cg,
                what_has_no_operator_is_refused;
            vector_fields: components_agree_with_the_processor, components_of_all_degrees_agree_with_the_processor,
                iterations_on_components_are_those_of_the_processor, a_field_without_components_is_refused;
            quadrilaterals: products_on_quadrilaterals_agree_with_the_definition,
                quadrilaterals_with_lists_agree_with_the_processor,
                components_on_quadrilaterals_agree_with_the_processor,
                quadrilaterals_of_all_degrees_agree_with_the_processor,
                iterations_on_quadrilaterals_are_those_of_the_processor;
            degree_transfer: transfers_agree_with_those_of_the_processor, spaces_without_free_unknowns_have_transfers,
                vectors_of_other_lengths_are_refused;
            tangents: tangents_agree_with_the_processor, tangents_on_simplices_agree_with_the_processor, tangents_on_turned_cells_agree_with_the_processor,
                iterations_on_tangents_are_those_of_the_processor, matrices_of_forms_agree_with_the_processor,
                residuals_of_forms_agree_with_the_processor, forms_without_a_tangent_on_gpus_are_refused;
        }
    };
}

/// Instantiates the checks of multigrid on boxes, for the GPUs, real or emulated, that `$devices()` gives.
#[macro_export]
macro_rules! box_multigrid {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            box_multigrid: residuals_in_the_plane_agree_with_the_reference, transfers_in_the_plane_keep_functions_and_integrals, steps_in_the_plane_agree_with_the_reference, surrogates_in_the_plane_agree_with_the_reference, cycles_in_the_plane_are_those_of_the_reference, solves_in_the_plane_take_the_iterations_of_the_reference, residuals_on_mapped_cells_agree_with_the_reference, cycles_on_mapped_cells_are_those_of_the_reference, solves_on_mapped_cells_take_the_iterations_of_the_reference, steps_on_mapped_cells_agree_with_the_reference, shapes_of_blocks_change_nothing, steps_of_the_smoother_agree_with_the_reference, free_sides_are_smoothed_as_by_the_reference, cycles_with_free_sides_are_those_of_the_reference, all_ways_to_solve_on_patches_agree,
                published_kernels_agree_with_the_fused_kernel, residuals_agree_with_the_reference, transfers_keep_functions_and_integrals,
                boxes_of_any_extents_take_the_cycle_of_the_reference, full_multigrid_takes_the_cycles_of_the_reference, krylov_methods_take_cycles_and_products, grids_of_other_shapes_are_refused;
        }
    };
}

/// Instantiates the checks of alternating directions as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! alternating_directions {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            adi: explicit_stages_agree_with_the_reference, values_at_sides_are_set_and_added,
                runs_agree_with_the_reference;
        }
    };
}

/// Instantiates the checks of models of the membrane as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! membranes {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            ionic: steps_agree_with_the_reference, single_gates_agree_with_the_reference, implicit_states_agree_with_the_reference,
                points_without_a_solution_are_counted;
            activation: times_agree_with_the_reference;
        }
    };
}

/// Instantiates the checks of runs in time as tests, for the GPUs, real or emulated, that `$devices()` gives.
#[macro_export]
macro_rules! runs_in_time {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            in_time: heat_agrees_with_a_processor, infinite_sources_are_named_with_time_and_cell,
                hearts_agree_with_a_processor;
        }
    };
}

/// Instantiates the checks of several ranks as tests, for the GPUs, real or emulated, that `$devices()` gives.
#[macro_export]
macro_rules! several_ranks {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            rank_rows: divided_rows_are_those_of_the_host, first_levels_of_ranks_are_made_there,
                slivers_between_ranks_are_left_to_the_host,
                cycles_of_nodes_on_ranks_are_those_of_the_host;
            cell_sums: sums_of_ranks_are_those_of_the_whole;
            ranks: rows_of_ranks_solve_as_one, cells_of_ranks_solve_as_one, roots_of_ranks_are_those_of_one,
                box_cycles_of_ranks_are_those_of_one, links_have_costs;
            parts_of_boxes: parts_of_boxes_solve_as_one;
            in_time: hearts_on_ranks_agree_with_a_processor, heat_on_ranks_agrees_with_a_processor;
        }
    };
}

/// One test for each check of some modules of the suite.
#[macro_export]
macro_rules! checks {
    ($devices:path, $scope:expr; $($module:ident: $($check:ident),+;)+) => {
        $($(
            #[test]
            fn $check() {
                for device in $devices(stringify!($check)) {
                    $crate::suite::$module::$check(&device, &$scope);
                }
            }
        )+)+
    };
}
