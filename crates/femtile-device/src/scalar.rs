use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A value of a [`crate::Buffer`]: plain bytes, any bit pattern valid.
///
/// Kernels rely on its type in CUDA C, so only the types of this crate implement it.
pub trait Element: sealed::Sealed + bytemuck::Pod + Debug + PartialEq + Send + Sync + 'static {
    /// The name of the type in CUDA C.
    const C_NAME: &'static str;
}

/// Keeps other crates from implementing [`Element`](super::Element).
mod sealed {
    /// A type that kernels accept.
    pub trait Sealed {}
}

macro_rules! element {
    ($($t:ident $name:literal),*) => {
        $(impl sealed::Sealed for $t {}

        impl Element for $t {
            const C_NAME: &'static str = $name;
        })*
    };
}

element!(u8 "unsigned char", u16 "unsigned short", u32 "unsigned int", u64 "unsigned long long");
element!(i32 "int", f32 "float", f64 "double");

/// The floating-point numbers that Femtile computes with: `f32` and `f64`.
pub trait Scalar:
    Element
    + Display
    + PartialOrd
    + Default
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
{
    /// `"f32"` or `"f64"`, as case files and reports spell it.
    const NAME: &'static str;
    /// Additive identity.
    const ZERO: Self;
    /// Multiplicative identity.
    const ONE: Self;
    /// Distance from 1 to the next larger number.
    const EPSILON: Self;
    /// Nearest number to `value`.
    fn from_f64(value: f64) -> Self;
    /// Converts to f64 without rounding.
    fn to_f64(self) -> f64;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Neither NaN nor infinite.
    fn is_finite(self) -> bool;
}

macro_rules! scalar {
    ($t:ident, $name:literal) => {
        impl Scalar for $t {
            const NAME: &'static str = $name;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const EPSILON: Self = $t::EPSILON;
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            fn abs(self) -> Self {
                $t::abs(self)
            }
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
        }
    };
}

scalar!(f32, "f32");
scalar!(f64, "f64");
