use femtile_device::Cpu;
use femtile_multigrid::{BoxGrid, Multigrid, MultigridConfig, MultigridError, Smoother};

use crate::dense::on;

fn refused(coarse: &BoxGrid, n_levels: usize) -> MultigridError {
    Multigrid::<f64>::new(&Cpu::new(1).unwrap(), coarse, n_levels, MultigridConfig::default()).err().unwrap()
}

#[test]
fn grids_out_of_range_are_named() {
    let message = |degree: usize, widths: &[Vec<f64>]| BoxGrid::new(degree, widths).unwrap_err().to_string();
    assert_eq!(message(1, &[vec![1.0]]), "dimension 1: a box has 2 or 3 dimensions");
    assert!(message(0, &vec![vec![1.0]; 2]).starts_with("degree 0: "));
    assert!(message(11, &vec![vec![1.0]; 3]).contains("degree 1 to 10"));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(message(1, &[vec![1.0], vec![1.0, bad]]).starts_with("axis 1, cell 1: "), "{bad}");
    }
    assert!(message(1, &[vec![], vec![1.0]]).starts_with("axis 0"));
}

#[test]
fn one_side_at_least_has_to_be_given() {
    let grid = || BoxGrid::unit(2, 1, 4).unwrap();
    let error = grid().with_free_sides([[true; 2], [true; 2], [false; 2]]).unwrap_err();
    assert_eq!(error, MultigridError::Free);
    let free = [[true; 2], [true, false], [true; 2]];
    assert_eq!(grid().with_free_sides(free).unwrap().free_sides(), [[true; 2], [true, false], [false; 2]]);
    // A free side has unknowns where there is a single cell.
    let strip = BoxGrid::new(1, &[vec![0.5; 4], vec![1.0]]).unwrap();
    assert!(matches!(refused(&strip, 1), MultigridError::Coarsest { axis: 1, cells: 1, least: 2, .. }));
    let strip = strip.with_free_sides([[false; 2], [false, true], [false; 2]]).unwrap();
    assert_eq!(strip.n_unknowns(), 3);
    assert!(Multigrid::<f64>::new(&Cpu::new(1).unwrap(), &strip, 2, MultigridConfig::default()).is_ok());
}

#[test]
fn levels_that_cannot_be_are_refused_before_anything_is_made() {
    let one_cell = BoxGrid::unit(2, 1, 1).unwrap();
    assert_eq!(refused(&one_cell, 2), MultigridError::Coarsest { axis: 0, cells: 1, least: 2, most: 32 });
    assert!(matches!(
        refused(&BoxGrid::unit(3, 8, 5).unwrap(), 1),
        MultigridError::Coarsest { cells: 5, most: 4, .. }
    ));
    let coarse = BoxGrid::unit(3, 8, 2).unwrap();
    assert!(refused(&coarse, 0).to_string().contains("at least one"));
    let message = refused(&coarse, 12).to_string();
    assert!(message.contains("GiB a vector"), "{message}");
}

#[test]
fn a_single_layer_of_bent_cells_has_no_patches() {
    let mut corners: Vec<[f64; 3]> = (0..10).map(|i| [f64::from(i % 5), f64::from(i / 5), 0.0]).collect();
    corners[2][1] = 0.2;
    let grid = BoxGrid::mapped(2, &[4, 1], corners, vec![1.0; 4]).unwrap();
    let below = |smoother| {
        let config = MultigridConfig { smoother, ..MultigridConfig::default() };
        Multigrid::<f64>::from_finest(&Cpu::new(1).unwrap(), &grid, config).map(|_| ())
    };
    assert_eq!(below(Smoother::VertexPatch), Err(MultigridError::Layer { axis: 1 }));
    assert_eq!(below(Smoother::Chebyshev), Ok(()));
}

#[test]
fn vectors_of_another_length_are_refused_and_left_alone() {
    let cpu = Cpu::new(1).unwrap();
    let coarse = BoxGrid::unit(2, 2, 2).unwrap();
    let multigrid = Multigrid::<f64>::new(&cpu, &coarse, 2, MultigridConfig::default()).unwrap();
    let (mut x, b) = (on(&cpu, &[7.0; 81]), on(&cpu, &[1.0; 80]));
    let expected = MultigridError::Length { field: "b", expected: 81, found: 80 };
    assert_eq!(multigrid.v_cycle(&mut x, &b).unwrap_err(), expected);
    assert_eq!(multigrid.solve_full(&mut x, &b, 1e-9, 5).unwrap_err(), expected);
    assert!(x.as_slice().iter().all(|&x| x == 7.0));
}

#[test]
fn nothing_on_the_right_side_gives_zero() {
    let cpu = Cpu::new(1).unwrap();
    let multigrid =
        Multigrid::<f64>::new(&cpu, &BoxGrid::unit(3, 2, 2).unwrap(), 2, MultigridConfig::default()).unwrap();
    let mut x = on(&cpu, &vec![f64::NAN; multigrid.grid().n_nodes()]);
    let outcome = multigrid.solve_full(&mut x, &on(&cpu, &vec![0.0; 729]), 1e-9, 5).unwrap();
    assert!(outcome.is_converged && outcome.cycles() == 0 && x.as_slice().iter().all(|&x| x == 0.0));
}
