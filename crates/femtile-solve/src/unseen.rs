//! Sources that the points of the elements do not see.

use femtile_fem::SourceTotals;
use femtile_space::Space;

use crate::discretization::Discretization;

/// Share of a source by which both integrals may differ, summed over cells.
const DIFFERENCE: f64 = 0.25;

/// Returns a warning for each source whose integrals over cells are far from those with many more points.
pub(crate) fn unseen_sources(problem: &Discretization<'_>) -> Vec<String> {
    // Parts would count cells of others.
    if problem.divided.is_some() {
        return Vec::new();
    }
    let Ok(space) = Space::of(problem.mesh, problem.space()) else { return Vec::new() };
    let n = problem.sources.len();
    let of_component = |component: usize| {
        // A source that is infinite at one of the further points is no error.
        let totals = SourceTotals::of(&problem.form(component), &space).ok().flatten()?;
        let SourceTotals { integrated, sampled, difference, size, n_points } = totals;
        (difference > DIFFERENCE * size).then(|| {
            let index = if n == 1 { String::new() } else { format!("[{component}]") };
            format!(
                "`source`{index} varies within cells: its integral is {integrated:.3e} with the points of the elements, and \
                 about {sampled:.3e} with {n_points} points in each cell; refine the mesh where it is not zero"
            )
        })
    };
    (0..n).filter_map(of_component).collect()
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{SquareConfig, square};

    use crate::{Poisson, SolverConfig};

    #[test]
    fn a_source_that_no_point_sees_is_told_with_both_integrals() {
        let mesh = square(&SquareConfig { cells: [10, 10], ..SquareConfig::default() }).unwrap();
        let warnings = |source: &str| {
            let problem = Poisson::new(&mesh).source(source).dirichlet("all", 0.0).unwrap();
            problem.solve(&SolverConfig::default()).unwrap().warnings().to_vec()
        };
        let narrow = warnings("if(hypot(x-0.53, y-0.47) < 0.01, 1/(pi*0.01^2), 0)");
        assert!(narrow.len() == 1 && narrow[0].contains("integral is 0.000e0"), "{narrow:?}");
        for seen in ["x - y", "if(hypot(x-0.53, y-0.47) < 0.2, 1, 0)", "exp(-10*x)"] {
            assert_eq!(warnings(seen), Vec::<String>::new(), "{seen}");
        }
    }
}
