use std::f64::consts::FRAC_1_SQRT_2;

/// The diagonal entry γ of SDIRK2, with which the scheme is L-stable.
pub(super) const GAMMA: f64 = 1.0 - FRAC_1_SQRT_2;

/// Implicit schemes; all but Crank–Nicolson damp stiff components in one step (L-stable).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Backward Euler: order 1, one stage.
    ImplicitEuler,
    /// Backward differentiation over two steps of any lengths: order 2, one stage. The first step is one of SDIRK2.
    Bdf2,
    /// The singly diagonally implicit Runge–Kutta method with two stages, `[alexander1977]`: order 2.
    Sdirk2,
    /// The trapezoidal rule: order 2, one stage, A-stable only: rough initial values oscillate for long.
    CrankNicolson,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 4] = [Self::ImplicitEuler, Self::Bdf2, Self::Sdirk2, Self::CrankNicolson];

    /// Returns the name, as in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ImplicitEuler => "implicit-euler",
            Self::Bdf2 => "bdf2",
            Self::Sdirk2 => "sdirk2",
            Self::CrankNicolson => "crank-nicolson",
        }
    }

    /// Returns the order of convergence.
    pub const fn order(self) -> usize {
        match self {
            Self::ImplicitEuler => 1,
            Self::Bdf2 | Self::Sdirk2 | Self::CrankNicolson => 2,
        }
    }

    /// Returns the keys of the papers behind it.
    pub const fn citations(self) -> &'static [&'static str] {
        match self {
            Self::Sdirk2 | Self::Bdf2 => &["alexander1977"],
            Self::ImplicitEuler | Self::CrankNicolson => &[],
        }
    }

    /// Returns the shift of the stages of SDIRK2 with steps of a length.
    pub fn sdirk2_shift(length: f64) -> f64 {
        1.0 / (GAMMA * length)
    }

    /// Returns the local error of a step as a share of the distance between its result and the extrapolation.
    ///
    /// Extrapolation of degree $p$, the order, misses the solution by $c \prod_j (t_{n+1} - t_{n-j})$ with
    /// $c = u^{(p+1)}/(p+1)!$. The scheme misses it by $-c e$ with the constant $e$ below. So the share is
    /// $e / (\prod_j (t_{n+1} - t_{n-j}) + e)$ (Milne's device).
    ///
    /// `lengths` are those of the step and of the steps before it, $p + 1$ of them.
    pub(super) fn local_share(self, lengths: &[f64]) -> f64 {
        let h = lengths[0];
        let reach = lengths.iter().scan(0.0, |sum, length| {
            *sum += length;
            Some(*sum)
        });
        let product: f64 = reach.product();
        let e = match self {
            Self::ImplicitEuler => h * h,
            Self::Bdf2 => {
                let both = h + lengths[1];
                h * both / (1.0 / h + 1.0 / both)
            }
            // The stability function is 1 + z + z²/2 + (3γ² − 2γ³) z³ + …
            Self::Sdirk2 => 6.0 * (3.0 * GAMMA.powi(2) - 2.0 * GAMMA.powi(3) - 1.0 / 6.0) * h.powi(3),
            Self::CrankNicolson => 0.5 * h.powi(3),
        };
        e / (product + e)
    }
}
