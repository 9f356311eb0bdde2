//! Operators without a matrix on fields of several components, held to those of the processor.

use femtile::device::{Buffer, Cpu, Cuda, Device, Scalar};
use femtile::expression::Expression;
use femtile::fem::Coefficient;
use femtile::fem::tensor::FacetMatrix;
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::cg::{CgKernels, ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::merged_cg::MergedCg;
use femtile::linalg::precondition::Diagonal;
use femtile::linalg::{LinearOperator, Preconditioner};
use femtile::matrix_free::{
    CellRule, CudaMatrixFree, CudaMatrixFreeConfig, LaunchShape, MatrixFree, MatrixFreeConfig,
    MetricEvaluation, Terms,
};
use femtile::mesh::Mesh;
use femtile::space::TensorSpace;

use super::Scope;
use super::matrix_free::{bend, cubes, deformed, ring, side, skew};
use super::problems::Random;
use super::vector::nan;

const GAUSS: CellRule = CellRule::Gauss { extra: 0 };
const MORE_GAUSS: CellRule = CellRule::Gauss { extra: 1 };
const LOBATTO: CellRule = CellRule::GaussLobatto;

/// An operator on a field.
pub(super) struct Case<'a> {
    pub mesh: &'a Mesh,
    pub degree: usize,
    pub components: usize,
    pub rule: CellRule,
    pub terms: Terms<'a>,
    pub metric: Option<MetricEvaluation>,
    /// Cells of a block, cells of a group.
    pub cut: Option<(usize, usize)>,
}

impl Case<'_> {
    fn space(&self) -> TensorSpace<'_> {
        TensorSpace::new(self.mesh, self.degree).unwrap()
    }

    /// The operator of a GPU, with facets.
    fn on_gpu<T: Scalar>(
        &self,
        device: &Cuda,
        constrained: &[u32],
        facets: &[FacetMatrix],
    ) -> CudaMatrixFree<T> {
        let config = CudaMatrixFreeConfig {
            components: self.components,
            metric: self.metric,
            shape: self.cut.map(|(cells, _)| LaunchShape { cells, blocks: 1 }),
            cells_per_group: self.cut.map(|(_, per_group)| per_group),
        };
        let a = CudaMatrixFree::new(device, &self.space(), self.terms, self.rule, constrained, config);
        a.unwrap().with_facets(facets).unwrap()
    }

    /// The same of a processor.
    fn on_cpu(&self, cpu: &Cpu, constrained: &[u32], facets: &[FacetMatrix]) -> MatrixFree<f64> {
        let (rule, components) = (self.rule, self.components);
        let config = MatrixFreeConfig { rule, constrained, facets, components, metric: None };
        MatrixFree::new(cpu, &self.space(), self.terms, config).unwrap()
    }

    /// A symmetric matrix on the unknowns of a side of every second cell.
    fn facets(&self) -> Vec<FacetMatrix> {
        let facet = |position: usize| {
            let dofs = side(self.mesh, self.degree, position);
            let (n, factor) = (dofs.len(), Random::new(position as u64).vector::<f64>(dofs.len().pow(2)));
            let entries = (0..n * n).map(|at| factor[at] + factor[at % n * n + at / n]).collect();
            FacetMatrix { dofs, entries }
        };
        (0..self.mesh.n_cells()).step_by(2).map(facet).collect()
    }

    /// Holds the products and the diagonal to those of the processor, with some unknowns constrained and with none, and a second
    /// product to the bits of the first.
    pub(super) fn check<T: Scalar>(&self, device: &Cuda, tolerance: f64) {
        let (cpu, facets) = (Cpu::new(1).unwrap(), self.facets());
        for constrained in [Vec::new(), side(self.mesh, self.degree, 0)] {
            let wanted = self.on_cpu(&cpu, &constrained, &facets);
            let found = self.on_gpu::<T>(device, &constrained, &facets);
            let n = wanted.n_rows();
            assert_eq!((found.n_rows(), found.n_cols()), (n, n));
            let x: Vec<f64> = Random::new(7).vector(n);
            let rounded: Vec<T> = x.iter().map(|&x| T::from_f64(x)).collect();
            let products = [(); 2].map(|()| product(&found, &rounded));
            self.agree(&products[0], &product(&wanted, &x), tolerance, "product");
            assert!(products[0] == products[1], "bits differ from run to run");
            self.agree(&found.diagonal().unwrap(), &wanted.diagonal(), tolerance, "diagonal");
        }
    }

    /// Residuals of conjugate gradients, plain and merged, are those of the processor.
    pub(super) fn iterates_as_the_processor(&self, device: &Cuda) {
        let (constrained, mut facets) = (side(self.mesh, self.degree, 0), self.facets());
        // Far smaller than the cells: the operator stays positive definite.
        facets.iter_mut().flat_map(|facet| &mut facet.entries).for_each(|entry| *entry *= 1e-4);
        let (cpu, on_gpu) = (Cpu::new(1).unwrap(), self.on_gpu::<f64>(device, &constrained, &facets));
        let on_cpu = self.on_cpu(&cpu, &constrained, &facets);
        let expected = residuals(&on_cpu, |config, x, m, b| {
            ConjugateGradient::new(config).solve(x, &on_cpu, m, b, &SingleRank, &mut ()).unwrap().residuals
        });
        let plain = residuals(&on_gpu, |config, x, m, b| {
            ConjugateGradient::new(config).solve(x, &on_gpu, m, b, &SingleRank, &mut ()).unwrap().residuals
        });
        let merged = residuals(&on_gpu, |config, x, m, b| {
            MergedCg::new(config).solve(x, &on_gpu, m, b, &SingleRank, &mut ()).unwrap().residuals
        });
        assert_eq!(expected.len(), 9);
        for found in [plain, merged] {
            assert_eq!(found.len(), expected.len());
            let mut largest = 0.0_f64;
            for (found, wanted) in found.iter().zip(&expected) {
                largest = largest.max(*wanted);
                assert!(
                    (found - wanted).abs() <= 1e-10 * largest,
                    "{}: {found:e} {wanted:e}",
                    self.components
                );
            }
        }
    }

    fn agree<T: Scalar>(&self, found: &[T], wanted: &[f64], tolerance: f64, what: &str) {
        assert_eq!(found.len(), wanted.len());
        let size = wanted.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
        for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let error = (found.to_f64() - wanted).abs() / size;
            let Self { degree, components, rule, metric, .. } = self;
            let of = format!("degree {degree}, {components} components, {rule:?}, {metric:?}");
            assert!(error <= tolerance, "{of}: {what}, entry {i} is off by {error:e}");
        }
    }
}

/// The product with x, in a vector of not-a-numbers.
fn product<T: Scalar, D: Device>(a: &dyn LinearOperator<T, D>, x: &[T]) -> Vec<T> {
    let mut y = nan(a.device(), x.len());
    a.apply(&mut y, &Buffer::from_host(a.device(), x).unwrap()).unwrap();
    y.to_host().unwrap()
}

/// All evaluations of metrics, with as many components as are computed at the same time, and with several times as many.
pub fn components_agree_with_the_processor(device: &Cuda, _: &Scope) {
    let (one, two) = (Coefficient::Constant(1.0), Coefficient::Constant(2.0));
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]]);
    let varying = Coefficient::from(Expression::parse("1 + 0.3*x*y").unwrap());
    let laplace = Terms { sigma: Some(&one), lambda: None };
    let helmholtz = Terms { sigma: Some(&varying), lambda: Some(&two) };
    let anisotropic = Terms { sigma: Some(&tensor), lambda: Some(&two) };
    let mass = Terms { sigma: None, lambda: Some(&varying) };
    let (stored, computed) = (Some(MetricEvaluation::Stored), Some(MetricEvaluation::Computed));
    let bent = deformed(cubes([3, 2, 3]), bend);
    let (cell, two_cells) = (deformed(cubes([1, 1, 1]), bend), deformed(cubes([1, 1, 2]), bend));
    let (affine, ring) = (deformed(cubes([2, 3, 1]), skew), ring(5));
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
        case(&bent, (1, 3), GAUSS, laplace, computed, Some((5, 5))),
        case(&bent, (2, 2), MORE_GAUSS, helmholtz, stored, Some((2, 9))),
        case(&affine, (2, 3), GAUSS, anisotropic, None, None),
        case(&bent, (2, 6), MORE_GAUSS, mass, stored, Some((3, 7))),
        case(&bent, (3, 3), LOBATTO, laplace, stored, Some((2, 2))),
        case(&two_cells, (4, 2), GAUSS, anisotropic, computed, None),
        case(&two_cells, (5, 5), LOBATTO, laplace, stored, None),
        case(&cell, (5, 3), GAUSS, laplace, computed, None),
        case(&ring, (3, 2), GAUSS, laplace, stored, Some((2, 5))),
    ] {
        case.check::<f64>(device, 1e-12);
    }
    case(&bent, (3, 3), GAUSS, laplace, computed, None).check::<f32>(device, 4e-6);
}

/// All degrees with several numbers of components, as they are cut by default.
pub fn components_of_all_degrees_agree_with_the_processor(device: &Cuda, scope: &Scope) {
    let one = Coefficient::Constant(1.0);
    let both = Terms { sigma: Some(&one), lambda: Some(&one) };
    let mesh = deformed(cubes([2, 1, 1]), bend);
    let metrics = [Some(MetricEvaluation::Stored), Some(MetricEvaluation::Computed), None];
    let degrees: &[usize] = if scope.has_every_kind { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } else { &[7] };
    for &degree in degrees {
        let components = [2 + degree % 4, 2 + (degree + 1) % 4, 3];
        for &components in if scope.has_every_kind { &components[..] } else { &components[2..] } {
            let rule = [LOBATTO, GAUSS, MORE_GAUSS][(degree + components) % 3];
            let terms = [both, Terms { lambda: None, ..both }, Terms { sigma: None, ..both }][components % 3];
            let metric = metrics[degree % 3];
            let case = Case { mesh: &mesh, degree, components, rule, terms, metric, cut: None };
            case.check::<f64>(device, 1e-12);
            if scope.has_every_kind {
                case.check::<f32>(device, 1e-5);
            }
        }
    }
}

/// The residuals of eight iterations.
fn residuals<D: CgKernels<f64>>(
    a: &dyn LinearOperator<f64, D>,
    solve: impl Fn(KrylovConfig, &mut Buffer<f64, D>, &dyn Preconditioner<f64, D>, &Buffer<f64, D>) -> Vec<f64>,
) -> Vec<f64> {
    let (device, mut random) = (a.device(), Random::new(23));
    let b = Buffer::from_host(device, &random.vector::<f64>(a.n_rows())).unwrap();
    let inverse: Vec<f64> = random.vector::<f64>(a.n_rows()).iter().map(|x| 1.5 + x).collect();
    let m = Diagonal::from_inverse(Buffer::from_host(device, &inverse).unwrap());
    let config = KrylovConfig { tolerance: 1e-10, max_iterations: 8, ..KrylovConfig::default() };
    solve(config, &mut Buffer::zeros(device, a.n_rows()).unwrap(), &m, &b)
}

/// Conjugate gradients, whose products also sum p·q over all components, take the steps that a processor takes.
pub fn iterations_on_components_are_those_of_the_processor(device: &Cuda, _: &Scope) {
    let two = Coefficient::Constant(2.0);
    let terms = Terms { sigma: Some(&two), lambda: Some(&two) };
    let (bent, ring) = (deformed(cubes([3, 2, 3]), bend), ring(5));
    let stored = Some(MetricEvaluation::Stored);
    for (mesh, (degree, components), rule, metric) in [
        (&bent, (3, 3), LOBATTO, stored),
        (&bent, (2, 2), MORE_GAUSS, stored),
        (&ring, (3, 5), GAUSS, Some(MetricEvaluation::Computed)),
    ] {
        let case = Case { mesh, degree, components, rule, terms, metric, cut: Some((2, 7)) };
        case.iterates_as_the_processor(device);
    }
}

/// A field without components, and one with more rows than can be numbered, are refused.
pub fn a_field_without_components_is_refused(device: &Cuda, _: &Scope) {
    let (one, mesh) = (Coefficient::Constant(1.0), cubes([1, 1, 1]));
    let (terms, space) = (Terms { sigma: Some(&one), lambda: None }, TensorSpace::new(&mesh, 1).unwrap());
    let config = CudaMatrixFreeConfig { components: 0, ..CudaMatrixFreeConfig::default() };
    let error = CudaMatrixFree::<f64>::new(device, &space, terms, GAUSS, &[], config).unwrap_err();
    assert!(error.to_string().contains("one component at least"), "{error}");
    // Rows of all components, a multiple of eight, would be eight where the product wraps.
    let config = CudaMatrixFreeConfig { components: (1 << 61) + 1, ..config };
    assert!(CudaMatrixFree::<f64>::new(device, &space, terms, GAUSS, &[], config).is_err());
}
