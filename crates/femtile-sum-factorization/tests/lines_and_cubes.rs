//! Products along lines and on cubes against plain loops.

use femtile_device::Cpu;
use femtile_device::cpu::SimdLevel;
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::{Lagrange, Table};

use femtile_sum_factorization::{
    Factor, Mapped, Metric, Parity, SumFactorization, contract, contract_reference, gradient,
    gradient_reference, lanes, separable, separable_reference, subtract_contraction,
};

/// Pseudorandom numbers between −1 and 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// A random table with this parity; the middle entry of an odd one is zero.
fn table(n_points: usize, n_shapes: usize, parity: Parity, random: &mut Random) -> Table {
    let n = n_points * n_shapes;
    let mut entries: Vec<f64> = (0..n).map(|_| random.next()).collect();
    for i in 0..n.div_ceil(2) {
        match parity {
            Parity::Even => entries[n - 1 - i] = entries[i],
            Parity::Odd if 2 * i + 1 == n => entries[i] = 0.0,
            Parity::Odd => entries[n - 1 - i] = -entries[i],
            Parity::None => {}
        }
    }
    Table { n_points, n_shapes, entries }
}

fn agree<T: SumFactorization>(
    cpu: &Cpu,
    factor: &Factor<T>,
    [inner, outer]: [usize; 2],
    random: &mut Random,
) {
    let n_lanes = lanes::<T>(cpu);
    let len = |n: usize| outer * n * inner * n_lanes;
    let x: Vec<T> = (0..len(factor.n_cols())).map(|_| T::from_f64(random.next())).collect();
    let mut expected = vec![T::ZERO; len(factor.n_rows())];
    let mut found = vec![T::from_f64(f64::NAN); expected.len()];
    contract_reference(factor, (inner, n_lanes), &x, &mut expected);
    contract(cpu, factor, inner, &x, &mut found);
    let begin: Vec<T> = expected.iter().map(|_| T::from_f64(random.next())).collect();
    let mut less = begin.clone();
    subtract_contraction(cpu, factor, inner, &x, &mut less);
    let tolerance = 30.0 * if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    for (i, (e, f)) in expected.iter().zip(&found).enumerate() {
        let subtracted = begin[i].to_f64() - less[i].to_f64();
        let error = (e.to_f64() - f.to_f64()).abs().max((e.to_f64() - subtracted).abs());
        let (m, n, parity) = (factor.n_rows(), factor.n_cols(), factor.parity());
        assert!(
            error <= tolerance,
            "{m} x {n}, {parity:?}, {inner} inside, {cpu:?}: entry {i} off by {error:e}"
        );
    }
}

#[test]
fn lines_of_all_sizes_agree_with_plain_loops() {
    let mut random = Random(1);
    for level in SimdLevel::available() {
        let cpu = Cpu::with_simd(1, level).unwrap();
        for n in 1..=14_usize {
            for m in [n.saturating_sub(1).max(1), n, n + 1, 3] {
                for parity in [Parity::Even, Parity::Odd, Parity::None] {
                    let table = table(m, n, parity, &mut random);
                    for shape in [[1, 1], [1, 3], [2, 1], [5, 2], [3, 0]] {
                        agree(&cpu, &Factor::<f64>::with_parity(&table, parity), shape, &mut random);
                        agree(&cpu, &Factor::<f32>::with_parity(&table, parity), shape, &mut random);
                    }
                }
            }
        }
    }
}

#[test]
fn the_parity_of_tables_is_found() {
    for degree in 1..=10 {
        let shapes = Lagrange::gauss_lobatto(degree);
        let (points, _) = gauss_legendre(degree + 2);
        assert_eq!(Factor::<f64>::new(&shapes.values(&points)).parity(), Parity::Even);
        assert_eq!(Factor::<f64>::new(&shapes.slopes(&points)).parity(), Parity::Odd);
        assert_eq!(Factor::<f64>::new(&shapes.slopes(&points).transpose()).parity(), Parity::Odd);
    }
    let skew = Lagrange::new(vec![0.0, 0.3, 1.0]);
    assert_eq!(Factor::<f64>::new(&skew.values(&[0.1, 0.9])).parity(), Parity::None);
}

#[test]
fn six_by_six_takes_twelve_additions_and_eighteen_products() {
    let shapes = Lagrange::gauss_lobatto(5);
    let (points, _) = gauss_legendre(6);
    assert_eq!(Factor::<f64>::new(&shapes.values(&points)).operations(), [12, 18]);
    let plain = Factor::<f64>::with_parity(&shapes.values(&points), Parity::None);
    assert_eq!(plain.operations(), [0, 36]);
    assert_eq!(
        Factor::<f64>::new(&Lagrange::gauss_lobatto(4).slopes(&gauss_legendre(5).0)).operations(),
        [8, 12]
    );
}

/// Computes $\partial_z$ of a polynomial of degree (3, 3, 3) on the cube, axis by axis.
#[test]
fn a_polynomial_is_differentiated_axis_by_axis() {
    let cpu = Cpu::new(1).unwrap();
    let (shapes, (points, _)) = (Lagrange::gauss_lobatto(3), gauss_legendre(4));
    let n_lanes = lanes::<f64>(&cpu);
    let f = |x: f64, y: f64, z: f64| (1.0 + x * x) * (y - y * y * y) * (2.0 + z * z * z);
    let slope = |x: f64, y: f64, z: f64| (1.0 + x * x) * (y - y * y * y) * 3.0 * z * z;
    let sampled = |f: &dyn Fn(f64, f64, f64) -> f64, at: &[f64]| -> Vec<f64> {
        let mut values = Vec::new();
        for z in at {
            for y in at {
                for x in at {
                    values.extend(std::iter::repeat_n(f(*x, *y, *z), n_lanes));
                }
            }
        }
        values
    };
    let [values, slopes] = [shapes.values(&points), shapes.slopes(&points)].map(|table| Factor::new(&table));
    let mut x = sampled(&f, shapes.nodes());
    for (factor, inner) in [(&values, 1), (&values, 4), (&slopes, 16)] {
        let mut y = vec![f64::NAN; x.len()];
        contract(&cpu, factor, inner, &x, &mut y);
        x = y;
    }
    for (found, expected) in x.iter().zip(sampled(&slope, &points)) {
        assert!((found - expected).abs() < 1e-13);
    }
}

#[test]
#[should_panic(expected = "do not form tensors with lines of 4 and 5 entries")]
fn lengths_that_do_not_fit_are_refused() {
    let cpu = Cpu::new(1).unwrap();
    let factor = Factor::<f64>::new(&Lagrange::gauss_lobatto(3).values(&gauss_legendre(5).0));
    contract(&cpu, &factor, 2, &vec![0.0; 8 * lanes::<f64>(&cpu)], &mut [0.0; 3]);
}

fn random_values<T: SumFactorization>(n: usize, random: &mut Random) -> Vec<T> {
    (0..n).map(|_| T::from_f64(random.next())).collect()
}

fn check_close<T: SumFactorization>(found: &[T], expected: &[T], what: &str) {
    let largest = expected.iter().fold(1.0_f64, |largest, x| largest.max(x.to_f64().abs()));
    let tolerance = 100.0 * if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let error = (f.to_f64() - e.to_f64()).abs() / largest;
        assert!(error <= tolerance, "{what}: entry {i} off by {error:e}");
    }
}

fn cubes_agree<T: SumFactorization>(cpu: &Cpu, n: usize, random: &mut Random) {
    let n_lanes = lanes::<T>(cpu);
    let len = n * n * n * n_lanes;
    let mut scratch = vec![T::from_f64(f64::NAN); 2 * len];
    let symmetric = || Parity::Even;
    let matrices: [Factor<T>; 2] =
        std::array::from_fn(|_| Factor::with_parity(&table(n, n, symmetric(), random), symmetric()));
    let coefficients = random_values::<T>(4 * n_lanes, random);
    let mut found = random_values::<T>(len, random);
    let mut expected = found.clone();
    separable(cpu, [&matrices[0], &matrices[1]], &coefficients, &mut found, &mut scratch);
    separable_reference([&matrices[0], &matrices[1]], n_lanes, &coefficients, &mut expected);
    check_close(&found, &expected, &format!("separable, {n}, {cpu:?}"));

    let mut diagonal = table(n, n, symmetric(), random);
    diagonal
        .entries
        .iter_mut()
        .enumerate()
        .for_each(|(at, entry)| *entry *= f64::from(u8::from(at % (n + 1) == 0)));
    let lumped = [&Factor::with_parity(&diagonal, symmetric()), &matrices[1]];
    let mut found = random_values::<T>(len, random);
    let mut expected = found.clone();
    separable(cpu, lumped, &coefficients, &mut found, &mut scratch);
    separable_reference(lumped, n_lanes, &coefficients, &mut expected);
    check_close(&found, &expected, &format!("separable with a diagonal mass matrix, {n}, {cpu:?}"));

    let slope = table(n, n, Parity::Odd, random);
    let slopes = [slope.transpose(), slope].map(|table| Factor::<T>::with_parity(&table, Parity::Odd));
    let slopes = [&slopes[1], &slopes[0]];
    for has_mass in [false, true] {
        let entries = random_values::<T>(7 * n_lanes, random);
        let weights = random_values::<T>(n, random);
        let stored = random_values::<T>(len * (6 + usize::from(has_mass)), random);
        for metric in [
            Metric::Constant { entries: &entries, weights: &weights, has_mass },
            Metric::Stored { entries: &stored, has_mass },
        ] {
            let mut found = random_values::<T>(len, random);
            let mut expected = found.clone();
            gradient(cpu, slopes, metric, &mut found, &mut scratch);
            gradient_reference(slopes, n_lanes, metric, &mut expected);
            check_close(&found, &expected, &format!("gradient, {n}, {has_mass}, {cpu:?}"));
        }
    }
}

/// Coefficients of the identity with random perturbations too small to fold it, and tables of powers or of other
/// functions.
fn bent_map<T: SumFactorization>(
    n: usize,
    order: usize,
    n_lanes: usize,
    random: &mut Random,
) -> (Vec<T>, [Vec<T>; 2]) {
    let k = order + 1;
    let points: Vec<f64> = (0..n).map(|at| (at as f64 + 0.5) / n as f64).collect();
    let (mut coefficients, tables) = if order <= 2 {
        let values = points.iter().flat_map(|x| (0..k).map(|i| x.powi(i as i32))).collect();
        let slopes = points.iter().flat_map(|x| (0..k).map(|i| i as f64 * x.powi(i as i32 - 1))).collect();
        // Along its own axis, x is the first power.
        let one = |c: usize, i: usize| if c == k.pow(i as u32) { 1.0 } else { 0.0 };
        ((0..3 * k * k * k).map(|at| one(at / 3, at % 3)).collect::<Vec<f64>>(), [values, slopes])
    } else {
        let nodes: Vec<f64> = (0..k).map(|i| i as f64 / order as f64).collect();
        let shapes = Lagrange::new(nodes.clone());
        let node = |at: usize| nodes[at / 3 / k.pow((at % 3) as u32) % k];
        let tables = [shapes.values(&points).entries, shapes.slopes(&points).entries];
        ((0..3 * k * k * k).map(node).collect(), tables)
    };
    coefficients.iter_mut().for_each(|c| *c += 0.01 / k.pow(3) as f64 * random.next());
    let spread = coefficients.iter().flat_map(|&c| std::iter::repeat_n(T::from_f64(c), n_lanes)).collect();
    (spread, tables.map(|table: Vec<f64>| table.into_iter().map(T::from_f64).collect()))
}

fn mapped_cubes_agree<T: SumFactorization>(cpu: &Cpu, n: usize, random: &mut Random) {
    let n_lanes = lanes::<T>(cpu);
    let len = n * n * n * n_lanes;
    let slope = table(n, n, Parity::Odd, random);
    let slopes = [slope.transpose(), slope].map(|table| Factor::<T>::with_parity(&table, Parity::Odd));
    let slopes = [&slopes[1], &slopes[0]];
    let weights = random_values::<T>(n, random);
    for order in 1..=4 {
        let (coefficients, tables) = &bent_map::<T>(n, order, n_lanes, random);
        let tables = [&tables[0][..], &tables[1]];
        for (entries, has_mass) in [(1, false), (6, true)] {
            let sigma = random_values::<T>(entries * n_lanes, random);
            let lambda = random_values::<T>(if has_mass { n_lanes } else { 0 }, random);
            let mapped =
                Mapped { coefficients, order, tables, weights: &weights, sigma: &sigma, lambda: &lambda };
            let mut scratch = vec![T::from_f64(f64::NAN); 2 * len + mapped.workspace_len(n_lanes)];
            let mut found = random_values::<T>(len, random);
            let mut expected = found.clone();
            gradient(cpu, slopes, Metric::Mapped(mapped), &mut found, &mut scratch);
            gradient_reference(slopes, n_lanes, Metric::Mapped(mapped), &mut expected);
            check_close(&found, &expected, &format!("mapped, {n}, {entries}, {cpu:?}"));
        }
    }
}

#[test]
fn metrics_from_maps_agree_with_plain_loops() {
    let mut random = Random(5);
    for level in SimdLevel::available() {
        let cpu = Cpu::with_simd(1, level).unwrap();
        for n in [2, 3, 4, 7, 10] {
            mapped_cubes_agree::<f64>(&cpu, n, &mut random);
            mapped_cubes_agree::<f32>(&cpu, n, &mut random);
        }
    }
}

#[test]
fn cubes_of_all_sizes_agree_with_plain_loops() {
    let mut random = Random(3);
    for level in SimdLevel::available() {
        let cpu = Cpu::with_simd(1, level).unwrap();
        for n in 2..=13 {
            cubes_agree::<f64>(&cpu, n, &mut random);
            cubes_agree::<f32>(&cpu, n, &mut random);
        }
    }
}
