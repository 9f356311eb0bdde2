//! Operators without a matrix on quadrilaterals, held to plain loops over dense shape functions and to those of the processor.

use femtile::device::Cuda;
use femtile::expression::Expression;
use femtile::fem::Coefficient;
use femtile::matrix_free::{CellRule, MetricEvaluation, Terms};
use femtile::mesh::generate::{SquareConfig, SquareSplit, square};
use femtile::mesh::{CellKind, Mesh};
use femtile::space::TensorSpace;

use super::Scope;
use super::matrix_free::{self, deformed, side};
use super::vector_fields::Case;

const GAUSS: CellRule = CellRule::Gauss { extra: 0 };
const MORE_GAUSS: CellRule = CellRule::Gauss { extra: 1 };
const LOBATTO: CellRule = CellRule::GaussLobatto;

pub(super) fn squares(cells: [usize; 2]) -> Mesh {
    let split = SquareSplit::Quadrilateral;
    square(&SquareConfig { upper: [1.0, 2.0], cells, split, ..SquareConfig::default() }).unwrap()
}

/// Cells of any shape.
pub(super) fn bent_squares(cells: [usize; 2]) -> Mesh {
    deformed(squares(cells), |[x, y, _]| [x + 0.1 * (3.0 * y).sin(), y + 0.07 * (4.0 * x + y).cos(), 0.0])
}

/// Parallelograms.
fn skewed_squares(cells: [usize; 2]) -> Mesh {
    deformed(squares(cells), |[x, y, _]| [x + 0.3 * y, y - 0.2 * x, 0.0])
}

/// A Möbius band, folded flat to a hexagon: some cells see an edge otherwise than the first that has it.
pub(super) fn band() -> Mesh {
    let corner = |i: usize| {
        let angle = i as f64 * std::f64::consts::FRAC_PI_3;
        [angle.cos(), 1.1 * angle.sin(), 0.0]
    };
    let cells = vec![0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 0, 1];
    Mesh::new((0..6).map(corner).collect(), CellKind::Quadrilateral, cells).unwrap()
}

/// Every term, rule and metric, in blocks of one batch and of several, with and without constrained unknowns.
pub fn products_on_quadrilaterals_agree_with_the_definition(device: &Cuda, scope: &Scope) {
    let (one, two) = (Coefficient::Constant(1.0), Coefficient::Constant(2.0));
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    let varying = Coefficient::from(Expression::parse("1 + 0.3*x*y").unwrap());
    let laplace = Terms { sigma: Some(&one), lambda: None };
    let helmholtz = Terms { sigma: Some(&varying), lambda: Some(&two) };
    let anisotropic = Terms { sigma: Some(&tensor), lambda: Some(&two) };
    let mass = Terms { sigma: None, lambda: Some(&varying) };
    let (stored, computed) = (Some(MetricEvaluation::Stored), Some(MetricEvaluation::Computed));
    let case = |degree, rule, terms, metric, cut| matrix_free::Case { degree, rule, terms, metric, cut };
    let cases = [
        case(3, LOBATTO, laplace, stored, Some((2, 2))),
        case(3, LOBATTO, laplace, stored, Some((3, 14))),
        case(2, MORE_GAUSS, helmholtz, None, Some((2, 9))),
        case(2, MORE_GAUSS, mass, None, Some((3, 7))),
        case(2, GAUSS, anisotropic, computed, Some((1, 5))),
        case(2, LOBATTO, mass, None, Some((2, 9))),
        case(1, GAUSS, laplace, computed, Some((5, 5))),
        case(6, GAUSS, anisotropic, computed, None),
    ];
    for case in &cases {
        let mut sizes = vec![[1, 1], [1, 2], [5, 4]];
        if scope.has_every_kind {
            sizes.extend([[13, 1], [37, 29], [211, 173]]);
        }
        for cells in sizes {
            let mesh = bent_squares(cells);
            matrix_free::check::<f64>(device, &mesh, case, &[], 1e-13);
            matrix_free::check::<f64>(device, &mesh, case, &side(&mesh, case.degree, 0), 1e-13);
        }
    }
    let affine = skewed_squares([4, 3]);
    let constant = case(2, GAUSS, anisotropic, None, None);
    matrix_free::check::<f64>(device, &affine, &constant, &side(&affine, 2, 1), 1e-13);
    matrix_free::check::<f64>(device, &squares([3, 5]), &constant, &[], 1e-13);
    let at_points = case(3, GAUSS, helmholtz, None, None);
    matrix_free::check::<f64>(device, &affine, &at_points, &side(&affine, 3, 1), 1e-13);
    let bent = bent_squares([5, 4]);
    let single = case(3, GAUSS, laplace, stored, None);
    matrix_free::check::<f32>(device, &bent, &single, &[], 2e-6);
}

/// Cells with lists of their unknowns, one and several components, in one batch and in several.
pub fn quadrilaterals_with_lists_agree_with_the_processor(device: &Cuda, _: &Scope) {
    let two = Coefficient::Constant(2.0);
    let terms = Terms { sigma: Some(&two), lambda: None };
    let mesh = band();
    assert!(TensorSpace::new(&mesh, 3).unwrap().n_irregular() > 0);
    for (components, cut) in [(1, (2, 2)), (2, (2, 3))] {
        let metric = Some(MetricEvaluation::Stored);
        let case = Case { mesh: &mesh, degree: 3, components, rule: GAUSS, terms, metric, cut: Some(cut) };
        case.check::<f64>(device, 1e-12);
    }
}

/// Components, facets and constrained unknowns with all evaluations of metrics.
pub fn components_on_quadrilaterals_agree_with_the_processor(device: &Cuda, _: &Scope) {
    let (one, two) = (Coefficient::Constant(1.0), Coefficient::Constant(2.0));
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    let varying = Coefficient::from(Expression::parse("1 + 0.3*x*y").unwrap());
    let laplace = Terms { sigma: Some(&one), lambda: None };
    let helmholtz = Terms { sigma: Some(&varying), lambda: Some(&two) };
    let anisotropic = Terms { sigma: Some(&tensor), lambda: Some(&two) };
    let mass = Terms { sigma: None, lambda: Some(&varying) };
    let (stored, computed) = (Some(MetricEvaluation::Stored), Some(MetricEvaluation::Computed));
    let (bent, affine) = (bent_squares([5, 4]), skewed_squares([4, 3]));
    let case = |mesh, (degree, components), rule, terms, metric, cut| Case {
        mesh,
        degree,
        components,
        rule,
        terms,
        metric,
        cut,
    };
    for case in [
        case(&bent, (1, 2), GAUSS, laplace, computed, Some((5, 5))),
        case(&bent, (2, 1), LOBATTO, anisotropic, stored, Some((2, 9))),
        case(&bent, (2, 2), MORE_GAUSS, helmholtz, stored, Some((2, 9))),
        case(&affine, (2, 3), GAUSS, anisotropic, None, None),
        case(&affine, (2, 3), GAUSS, helmholtz, None, None),
        case(&bent, (4, 2), GAUSS, helmholtz, computed, None),
        case(&bent, (2, 6), MORE_GAUSS, mass, stored, Some((3, 7))),
        case(&bent, (3, 4), LOBATTO, mass, stored, Some((2, 2))),
        case(&bent, (10, 2), GAUSS, anisotropic, computed, None),
        case(&bent, (5, 5), LOBATTO, laplace, stored, None),
    ] {
        case.check::<f64>(device, 1e-12);
    }
    case(&bent, (3, 2), GAUSS, laplace, computed, None).check::<f32>(device, 4e-6);
}

/// All degrees with several numbers of components, as they are cut by default.
pub fn quadrilaterals_of_all_degrees_agree_with_the_processor(device: &Cuda, scope: &Scope) {
    let one = Coefficient::Constant(1.0);
    let both = Terms { sigma: Some(&one), lambda: Some(&one) };
    let mesh = bent_squares(if scope.has_every_kind { [23, 31] } else { [2, 3] });
    let metrics = [Some(MetricEvaluation::Stored), Some(MetricEvaluation::Computed), None];
    let degrees: &[usize] = if scope.has_every_kind { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } else { &[8] };
    for &degree in degrees {
        for components in if scope.has_every_kind { 1..=5 } else { 3..=3 } {
            let rule = [LOBATTO, GAUSS, MORE_GAUSS][(degree + components) % 3];
            let terms = [both, Terms { lambda: None, ..both }, Terms { sigma: None, ..both }][components % 3];
            let metric = metrics[(degree + components) % 2];
            let case = Case { mesh: &mesh, degree, components, rule, terms, metric, cut: None };
            case.check::<f64>(device, 1e-12);
            if scope.has_every_kind {
                case.check::<f32>(device, 1e-5);
            }
        }
    }
}

/// Conjugate gradients, whose products also sum p·q, take the steps that a processor takes.
pub fn iterations_on_quadrilaterals_are_those_of_the_processor(device: &Cuda, _: &Scope) {
    let two = Coefficient::Constant(2.0);
    let terms = Terms { sigma: Some(&two), lambda: Some(&two) };
    let (bent, band) = (bent_squares([5, 4]), band());
    let stored = Some(MetricEvaluation::Stored);
    for (mesh, (degree, components), rule, metric) in [
        (&bent, (3, 1), LOBATTO, stored),
        (&bent, (2, 2), MORE_GAUSS, stored),
        (&band, (5, 1), GAUSS, Some(MetricEvaluation::Computed)),
    ] {
        let case = Case { mesh, degree, components, rule, terms, metric, cut: Some((2, 7)) };
        case.iterates_as_the_processor(device);
    }
}
