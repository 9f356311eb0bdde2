//! Arithmetic on SIMD vectors, written once for f32 and f64.

use bytemuck::Pod;
use femtile_device::Scalar;
use pulp::Simd;

/// Numbers with vectors of one entry a lane.
pub trait Wide: Scalar {
    /// A vector.
    type Vector<S: Simd>: Pod;

    /// Entries of a vector.
    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        size_of::<Self::Vector<S>>() / size_of::<Self>()
    }

    /// The same value in every lane.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// $a b$.
    fn product<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// $a / b$.
    fn quotient<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// $c - a b$, rounded once where the processor can.
    fn minus_product<S: Simd>(
        simd: S,
        c: Self::Vector<S>,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
    ) -> Self::Vector<S>;
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

macro_rules! wide {
    ($t:ident, $vector:ident, $splat:ident, $sub:ident, $mul:ident, $div:ident, $fused:ident, $abs:ident,
     $less:ident, $select:ident) => {
        impl Wide for $t {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }

            #[inline(always)]
            fn product<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$mul(a, b)
            }

            #[inline(always)]
            fn quotient<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$div(a, b)
            }

            #[inline(always)]
            fn minus_product<S: Simd>(simd: S, c: S::$vector, a: S::$vector, b: S::$vector) -> S::$vector {
                // Without vectors a fused product is a call of the C library.
                if Self::lanes::<S>() == 1 { simd.$sub(c, simd.$mul(a, b)) } else { simd.$fused(a, b, c) }
            }

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

wide!(
    f32,
    f32s,
    splat_f32s,
    sub_f32s,
    mul_f32s,
    div_f32s,
    negate_mul_add_f32s,
    abs_f32s,
    less_than_f32s,
    select_f32s
);
wide!(
    f64,
    f64s,
    splat_f64s,
    sub_f64s,
    mul_f64s,
    div_f64s,
    negate_mul_add_f64s,
    abs_f64s,
    less_than_f64s,
    select_f64s
);
