//! Arithmetic on SIMD vectors, written once for f32 and f64.

use bytemuck::Pod;
use pulp::Simd;

use crate::Scalar;

/// A scalar with SIMD vectors of pulp.
pub trait Wide: Scalar {
    /// A vector.
    type Vector<S: Simd>: Pod;

    /// Returns the number of lanes of a vector.
    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        size_of::<Self::Vector<S>>() / size_of::<Self>()
    }

    /// Returns a vector with `value` in every lane.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// $a + b$.
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// $a - b$.
    fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// $a b$.
    fn product<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// $a / b$.
    fn quotient<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// $c + a b$, rounded once if the processor can.
    fn plus_product<S: Simd>(
        simd: S,
        c: Self::Vector<S>,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// $c - a b$, rounded once if the processor can.
    fn minus_product<S: Simd>(
        simd: S,
        c: Self::Vector<S>,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
    ) -> Self::Vector<S>;
}

macro_rules! wide {
    ($t:ident, $vector:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $fused:ident,
     $fused_negated:ident) => {
        impl Wide for $t {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }

            #[inline(always)]
            fn plus<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }

            #[inline(always)]
            fn minus<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$sub(a, b)
            }

            #[inline(always)]
            fn product<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$mul(a, b)
            }

            #[inline(always)]
            fn quotient<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$div(a, b)
            }

            // Without vectors a fused product is a call of the C library.

            #[inline(always)]
            fn plus_product<S: Simd>(simd: S, c: S::$vector, a: S::$vector, b: S::$vector) -> S::$vector {
                if Self::lanes::<S>() == 1 { simd.$add(c, simd.$mul(a, b)) } else { simd.$fused(a, b, c) }
            }

            #[inline(always)]
            fn minus_product<S: Simd>(simd: S, c: S::$vector, a: S::$vector, b: S::$vector) -> S::$vector {
                if Self::lanes::<S>() == 1 {
                    simd.$sub(c, simd.$mul(a, b))
                } else {
                    simd.$fused_negated(a, b, c)
                }
            }
        }
    };
}

wide!(f32, f32s, splat_f32s, add_f32s, sub_f32s, mul_f32s, div_f32s, mul_add_f32s, negate_mul_add_f32s);
wide!(f64, f64s, splat_f64s, add_f64s, sub_f64s, mul_f64s, div_f64s, mul_add_f64s, negate_mul_add_f64s);
