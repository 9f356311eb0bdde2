//! Four arrays of any shapes that NumPy would broadcast, as one batch of systems.

use femtile::device::Scalar;

use super::axis_of;
use crate::arrays::{Announced, Array, Values, strides};
use crate::failure::Failure;

/// Names of the arrays in messages and files.
pub const NAMES: [&str; 4] = ["lower", "diagonal", "upper", "rhs"];

/// The common layout of the arrays of a batch.
pub struct Form {
    pub shape: Vec<usize>,
    /// The axis of the systems.
    pub axis: usize,
    /// The first axis of the right side is contiguous.
    is_fortran: bool,
    band_shape: Vec<usize>,
    bands_are_fortran: bool,
}

impl Form {
    /// Broadcasts lower, diagonal, upper and right side; vectors lie along the axis of the systems.
    pub fn new(arrays: &[Announced; 4], axis: isize) -> Result<Self, Failure> {
        let given = arrays.each_ref().map(|array| &*array.shape);
        let most = given.into_iter().max_by_key(|shape| shape.len()).unwrap_or_default();
        if most.is_empty() {
            return Err(Failure::message(
                "all arrays are numbers without an axis: give the right side a shape (N,)",
            ));
        }
        let axis = axis_of(axis, most)?;
        let shapes = given.map(|shape| lying(shape, most.len(), axis));
        let disagree = || {
            let shown: Vec<_> =
                NAMES.iter().zip(given).map(|(name, shape)| format!("{name} {}", tuple(shape))).collect();
            Failure::message(format!(
                "the shapes disagree: {}; along each axis, counted from the last, all must be equal or 1, and vectors lie \
                 along axis {axis}",
                shown.join(", ")
            ))
        };
        let shape = broadcast(&shapes).ok_or_else(disagree)?;
        refuse_size(&shape).map_err(Failure::message)?;
        let band_shape = padded(&broadcast(&shapes[..3]).ok_or_else(disagree)?, shape.len());
        let is_fortran = arrays[3].is_fortran && arrays[3].shape == shape;
        let bands_are_fortran = arrays[..3].iter().all(|band| band.is_fortran);
        Ok(Self { shape, axis, is_fortran, band_shape, bands_are_fortran })
    }

    /// Strides of the right side.
    pub fn strides(&self) -> Vec<usize> {
        strides(&self.shape, self.is_fortran)
    }

    /// Strides of the bands, zero where they repeat.
    pub fn band_strides(&self) -> Vec<usize> {
        repeating(&self.band_shape, &strides(&self.band_shape, self.bands_are_fortran))
    }

    /// Shape and order of an array, by its place among the four.
    fn of_array(&self, number: usize) -> (&[usize], bool) {
        if number < 3 { (&self.band_shape, self.bands_are_fortran) } else { (&self.shape, self.is_fortran) }
    }

    /// Bytes of the arrays of numbers of `size` bytes, and the most that is held until they are made from those of files.
    pub fn bytes(&self, arrays: &[Announced; 4], size: usize) -> [f64; 2] {
        let mut held: f64 = arrays.iter().map(|array| array.n_bytes() as f64).sum();
        let mut peak = held;
        // In the order of `Batch::new`.
        for number in [3, 0, 1, 2] {
            let (array, (shape, is_fortran)) = (&arrays[number], self.of_array(number));
            let read = array.n_bytes() as f64;
            let converted = read / array.size as f64 * size as f64;
            if array.size != size {
                peak = peak.max(held + converted);
            }
            held += converted - read;
            let own = lying(&array.shape, shape.len(), self.axis);
            if !lies_so(&own, array.is_fortran, shape, is_fortran) {
                let copy = shape.iter().map(|&n| n as f64).product::<f64>() * size as f64;
                peak = peak.max(held + copy);
                held += copy - converted;
            }
        }
        [held, peak]
    }
}

/// A batch in the layout of the solver.
pub struct Batch<T> {
    pub shape: Vec<usize>,
    /// Shape of the right side.
    pub strides: Vec<usize>,
    /// The first axis of the right side is contiguous.
    pub is_fortran: bool,
    /// Lower, diagonal and upper; they share their strides.
    pub bands: [Vec<T>; 3],
    /// Zero where the bands repeat.
    pub band_strides: Vec<usize>,
    pub rhs: Vec<T>,
}

impl<T: Scalar> Batch<T> {
    /// Brings the arrays of a form together; what already lies as it is needed is not copied.
    pub fn new(form: Form, arrays: [Array; 4]) -> Result<Self, Failure> {
        let [lower, diagonal, upper, rhs] = arrays;
        let lay = |array: Array, number| {
            let (shape, is_fortran) = form.of_array(number);
            let own = lying(&array.shape, shape.len(), form.axis);
            laid_out(Array { shape: own, ..array }, shape, is_fortran)
        };
        let rhs = lay(rhs, 3)?;
        let bands = [lay(lower, 0)?, lay(diagonal, 1)?, lay(upper, 2)?];
        let (strides, band_strides) = (form.strides(), form.band_strides());
        Ok(Self { strides, shape: form.shape, is_fortran: form.is_fortran, bands, band_strides, rhs })
    }

    /// Returns the first non-finite entry of each array, such as `lower[3, 7]`.
    pub fn non_finite(&self, axis: usize, is_open: bool) -> Vec<String> {
        let last = self.shape[axis].saturating_sub(1);
        let [lower, diagonal, upper] = &self.bands;
        let arrays = [(lower, Some(0)), (diagonal, None), (upper, Some(last)), (&self.rhs, None)];
        let mut found = Vec::new();
        for (k, (values, unread_row)) in arrays.into_iter().enumerate() {
            let strides = if k < 3 { &self.band_strides } else { &self.strides };
            let bad = values.iter().enumerate().filter(|(_, value)| !value.is_finite());
            let read = bad.map(|(at, value)| (index_of(at, strides), value)).find(|(index, _)| {
                // An entry that repeats along the axis is read in other rows, unless there are none.
                let row = (strides[axis] > 0 || last == 0).then_some(index[axis]);
                !is_open || unread_row.is_none() || row != unread_row
            });
            if let Some((index, value)) = read {
                let shown =
                    index.iter().zip(strides).map(|(i, &s)| if s == 0 { "…".into() } else { i.to_string() });
                found.push(format!("{}[{}] is {value}", NAMES[k], shown.collect::<Vec<_>>().join(", ")));
            }
        }
        found
    }
}

/// Returns a shape in Python notation.
pub fn tuple(shape: &[usize]) -> String {
    let sizes: Vec<_> = shape.iter().map(ToString::to_string).collect();
    if let [one] = &*sizes { format!("({one},)") } else { format!("({})", sizes.join(", ")) }
}

/// An array without entries may have axes of this product: flags are kept for systems of no rows, too.
const MOST_EMPTY: usize = 1 << 20;

/// Refuses a shape whose entries cannot be counted, or one without entries that would take memory all the same.
pub fn refuse_size(shape: &[usize]) -> Result<(), String> {
    let most = shape.iter().try_fold(1_usize, |n, &size| n.checked_mul(size.max(1)));
    match most {
        None => Err(format!("the arrays together have the shape {}, which is too large", tuple(shape))),
        Some(most) if shape.contains(&0) && most > MOST_EMPTY => Err(format!(
            "the shape {} has no entries, but axes of more than {MOST_EMPTY}: check how the files were written",
            tuple(shape)
        )),
        _ => Ok(()),
    }
}

/// Returns the broadcast shape; none where the shapes are incompatible.
pub fn broadcast(shapes: &[Vec<usize>]) -> Option<Vec<usize>> {
    let n = shapes.iter().map(Vec::len).max()?;
    let mut result = vec![1; n];
    for shape in shapes {
        for (size, &other) in result[n - shape.len()..].iter_mut().zip(shape) {
            match (*size, other) {
                (_, 1) => {}
                (1, _) => *size = other,
                (a, b) if a == b => {}
                _ => return None,
            }
        }
    }
    Some(result)
}

/// Returns the shape of an array among others of `n` axes: that of a vector along the axis of the systems.
fn lying(shape: &[usize], n: usize, axis: usize) -> Vec<usize> {
    match shape {
        &[length] => (0..n).map(|k| if k == axis { length } else { 1 }).collect(),
        other => other.to_vec(),
    }
}

fn padded(shape: &[usize], n: usize) -> Vec<usize> {
    [&vec![1; n - shape.len()], shape].concat()
}

/// Strides with zeros for axes of one entry.
fn repeating(shape: &[usize], strides: &[usize]) -> Vec<usize> {
    shape.iter().zip(strides).map(|(&n, &stride)| if n == 1 { 0 } else { stride }).collect()
}

/// Returns the index of an entry in a contiguous array.
pub fn index_of(at: usize, strides: &[usize]) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..strides.len()).filter(|&axis| strides[axis] > 0).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(strides[axis]));
    let (mut index, mut rest) = (vec![0; strides.len()], at);
    for axis in axes {
        index[axis] = rest / strides[axis];
        rest %= strides[axis];
    }
    index
}

/// Strides of an array along the axes of a shape of as many or more, zero along those where it repeats.
fn strides_along(array_shape: &[usize], is_fortran: bool, n_axes: usize) -> Vec<usize> {
    let own = strides(array_shape, is_fortran);
    let own = [&vec![0; n_axes - array_shape.len()], &*own].concat();
    repeating(&padded(array_shape, n_axes), &own)
}

/// Returns `true` where an array already has the given shape and order.
fn lies_so(array_shape: &[usize], array_is_fortran: bool, shape: &[usize], is_fortran: bool) -> bool {
    let from = strides_along(array_shape, array_is_fortran, shape.len());
    padded(array_shape, shape.len()) == shape && from == repeating(shape, &strides(shape, is_fortran))
}

/// Returns the numbers of an array in the given shape and order.
pub fn laid_out<T: Scalar>(array: Array, shape: &[usize], is_fortran: bool) -> Result<Vec<T>, Failure> {
    let as_it_is = lies_so(&array.shape, array.is_fortran, shape, is_fortran);
    let from = strides_along(&array.shape, array.is_fortran, shape.len());
    let values = converted(array.values);
    if as_it_is {
        return Ok(values);
    }
    let n: usize = shape.iter().product();
    let mut result = Vec::new();
    result.try_reserve_exact(n).map_err(|_| {
        Failure::message(format!("there is no memory for the {n} entries of the shape {}", tuple(shape)))
    })?;
    // The axes of the result, the slowest first.
    let mut axes: Vec<(usize, usize)> = shape.iter().copied().zip(from).collect();
    if is_fortran {
        axes.reverse();
    }
    let Some((inner, outer)) = axes.split_last() else { return Ok(values) };
    let mut index = vec![0; outer.len()];
    while result.len() < n {
        let start: usize = index.iter().zip(outer).map(|(i, (_, stride))| i * stride).sum();
        result.extend((0..inner.0).map(|i| values[start + i * inner.1]));
        for (i, (size, _)) in index.iter_mut().zip(outer).rev() {
            *i += 1;
            if *i < *size {
                break;
            }
            *i = 0;
        }
    }
    Ok(result)
}

fn converted<T: Scalar>(values: Values) -> Vec<T> {
    match values {
        Values::F32(values) => bytemuck::allocation::try_cast_vec(values)
            .unwrap_or_else(|(_, values)| values.iter().map(|&value| T::from_f64(value.into())).collect()),
        Values::F64(values) => bytemuck::allocation::try_cast_vec(values)
            .unwrap_or_else(|(_, values)| values.iter().map(|&value| T::from_f64(value)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(shape: &[usize], is_fortran: bool) -> Array {
        let n: usize = shape.iter().product();
        Array { shape: shape.to_vec(), is_fortran, values: Values::F64((0..n).map(|i| i as f64).collect()) }
    }

    /// A batch, and what its form says of memory.
    fn batch<T: Scalar>(arrays: [Array; 4]) -> Result<(Batch<T>, [f64; 2]), Failure> {
        let announced = arrays.each_ref().map(|array| Announced::of_array(&array.shape, array.is_fortran, 8));
        let form = Form::new(&announced, -1)?;
        let bytes = form.bytes(&announced, size_of::<T>());
        Ok((Batch::new(form, arrays)?, bytes))
    }

    /// Bytes of the arrays of a batch.
    fn held<T>(batch: &Batch<T>) -> f64 {
        let n: usize = batch.bands.iter().map(Vec::len).sum();
        ((n + batch.rhs.len()) * size_of::<T>()) as f64
    }

    #[test]
    fn the_memory_of_arrays_is_known_before_they_are_read() {
        let band = array(&[1, 4], false);
        let (made, bytes) =
            batch::<f64>([band.clone(), band.clone(), band.clone(), array(&[3, 4], true)]).ok().unwrap();
        assert_eq!((bytes, held(&made)), ([192.0, 192.0], 192.0));
        // The right side is repeated while all others are held.
        let (made, bytes) =
            batch::<f64>([band.clone(), band.clone(), band.clone(), array(&[3, 1], false)]).ok().unwrap();
        assert_eq!((bytes, held(&made)), ([192.0, 120.0 + 96.0], 192.0));
        let (made, bytes) =
            batch::<f32>([band.clone(), band.clone(), band, array(&[3, 4], false)]).ok().unwrap();
        assert_eq!((bytes, held(&made)), ([96.0, 192.0 + 48.0], 96.0));
    }

    #[test]
    fn shapes_are_broadcast_as_numpy_does() {
        let shape = |shapes: &[&[usize]]| broadcast(&shapes.iter().map(|s| s.to_vec()).collect::<Vec<_>>());
        assert_eq!(shape(&[&[], &[4], &[3, 1]]), Some(vec![3, 4]));
        assert_eq!(shape(&[&[0], &[1], &[2, 1]]), Some(vec![2, 0]));
        assert_eq!(shape(&[&[3, 4], &[3]]), None);
    }

    #[test]
    fn shapes_that_no_memory_holds_are_refused() {
        let empty = |shape: &[usize]| Array {
            shape: shape.to_vec(),
            is_fortran: false,
            values: Values::F64(Vec::new()),
        };
        let said = refuse_size(&[0, 40_000_000_000]).unwrap_err();
        assert!(said.contains("(0, 40000000000) has no entries"), "{said}");
        let said = refuse_size(&[1 << 22; 3]).unwrap_err();
        assert!(said.contains("(4194304, 4194304, 4194304), which is too large"), "{said}");
        let with_rhs = |rhs| {
            let scalar = || array(&[], false);
            batch::<f64>([scalar(), scalar(), scalar(), rhs])
        };
        assert!(with_rhs(empty(&[0, 40_000_000_000])).is_err());
        assert_eq!(with_rhs(empty(&[3, 0])).ok().unwrap().0.shape, [3, 0]);
    }

    #[test]
    fn bands_of_one_matrix_repeat_and_are_not_copied() {
        let band = array(&[1, 4], false);
        let (batch, _) = batch::<f64>([band.clone(), band.clone(), band, array(&[3, 4], true)]).ok().unwrap();
        assert_eq!((batch.band_strides, batch.bands[0].len()), (vec![0, 1], 4));
        assert_eq!((batch.strides, batch.is_fortran), (vec![1, 3], true));
    }

    #[test]
    fn vectors_lie_along_the_axis_of_the_systems() {
        let arrays = [array(&[2], false), array(&[], false), array(&[2], false), array(&[2, 3], false)];
        let announced = arrays.each_ref().map(|array| Announced::of_array(&array.shape, array.is_fortran, 8));
        let form = Form::new(&announced, 0).ok().unwrap();
        let batch = Batch::<f64>::new(form, arrays).ok().unwrap();
        assert_eq!((batch.shape, batch.band_strides), (vec![2, 3], vec![1, 0]));
        assert_eq!((&batch.bands[0][..], &batch.bands[1][..]), (&[0.0, 1.0][..], &[0.0, 0.0][..]));
        assert!(Form::new(&announced, 1).is_err());
    }

    #[test]
    fn arrays_that_lie_differently_are_brought_together() {
        let (lower, diagonal) = (array(&[], false), array(&[2, 3], true));
        let arrays = [lower, diagonal, array(&[3], false), array(&[2, 1], false)];
        let (batch, _) = batch::<f32>(arrays).ok().unwrap();
        assert_eq!((batch.shape, batch.strides), (vec![2, 3], vec![3, 1]));
        assert_eq!(batch.band_strides, [3, 1]);
        assert_eq!(batch.bands[0], [0.0; 6]);
        assert_eq!(batch.bands[1], [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
        assert_eq!(batch.bands[2], [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
        assert_eq!(batch.rhs, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn entries_beyond_the_ends_need_not_be_finite() {
        let with_nan = |at: usize| {
            let mut values: Vec<f64> = vec![1.0; 6];
            values[at] = f64::NAN;
            Array { shape: vec![2, 3], is_fortran: false, values: Values::F64(values) }
        };
        let sound = array(&[2, 3], false);
        let (batch, _) = batch::<f64>([with_nan(3), sound.clone(), with_nan(5), sound]).ok().unwrap();
        assert!(batch.non_finite(1, true).is_empty());
        assert_eq!(batch.non_finite(1, false), ["lower[1, 0] is NaN", "upper[1, 2] is NaN"]);
        assert_eq!(batch.non_finite(0, true).len(), 1);
    }
}
