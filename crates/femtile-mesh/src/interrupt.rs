use crate::MeshError;

/// Returns true once work should end early, and from then on always. Any thread may call it.
pub type IsInterrupted<'a> = Option<&'a (dyn Fn() -> bool + Sync)>;

/// Asks whether to continue.
#[derive(Clone, Copy)]
pub(crate) struct Interrupt<'a>(pub IsInterrupted<'a>);

impl Interrupt<'_> {
    /// Never interrupted.
    pub(crate) const NEVER: Self = Self(None);

    /// Fails once the work should end.
    pub(crate) fn go_on(self) -> Result<(), MeshError> {
        if self.is_set() { Err(MeshError::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn is_set(self) -> bool {
        self.0.is_some_and(|is_interrupted| is_interrupted())
    }
}
