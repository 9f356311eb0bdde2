//! Choices among SIMD vectors, written once for f32 and f64.

use femtile_device::cpu::Wide;
use pulp::Simd;

/// Vectors whose lanes are looked at one by one.
pub trait Choosing: Wide {
    /// `flag` where $|value| > |least|$ and the value is finite; one elsewhere.
    fn flag_unsound<S: Simd>(
        simd: S,
        flag: Self::Vector<S>,
        value: Self::Vector<S>,
        least: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// `flag` where the value is finite; one elsewhere.
    fn flag_infinite<S: Simd>(simd: S, flag: Self::Vector<S>, value: Self::Vector<S>) -> Self::Vector<S>;
    /// The two in that order, exchanged in the lanes where $|y| > |x|$ in `keys`.
    fn exchange_by<S: Simd>(
        simd: S,
        keys: (Self::Vector<S>, Self::Vector<S>),
        x: &mut Self::Vector<S>,
        y: &mut Self::Vector<S>,
    );
}

macro_rules! choosing {
    ($t:ident, $vector:ident, $splat:ident, $abs:ident, $less:ident, $select:ident) => {
        impl Choosing for $t {
            #[inline(always)]
            fn flag_unsound<S: Simd>(
                simd: S,
                flag: S::$vector,
                value: S::$vector,
                least: S::$vector,
            ) -> S::$vector {
                let is_larger = simd.$less(simd.$abs(least), simd.$abs(value));
                Self::flag_infinite(simd, simd.$select(is_larger, flag, simd.$splat(1.0)), value)
            }

            #[inline(always)]
            fn flag_infinite<S: Simd>(simd: S, flag: S::$vector, value: S::$vector) -> S::$vector {
                let is_finite = simd.$less(simd.$abs(value), simd.$splat($t::INFINITY));
                simd.$select(is_finite, flag, simd.$splat(1.0))
            }

            #[inline(always)]
            fn exchange_by<S: Simd>(
                simd: S,
                keys: (S::$vector, S::$vector),
                x: &mut S::$vector,
                y: &mut S::$vector,
            ) {
                let is_larger = simd.$less(simd.$abs(keys.0), simd.$abs(keys.1));
                let (first, second) = (*x, *y);
                *x = simd.$select(is_larger, second, first);
                *y = simd.$select(is_larger, first, second);
            }
        }
    };
}

choosing!(f32, f32s, splat_f32s, abs_f32s, less_than_f32s, select_f32s);
choosing!(f64, f64s, splat_f64s, abs_f64s, less_than_f64s, select_f64s);
