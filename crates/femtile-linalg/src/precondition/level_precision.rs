/// Precision of the levels of multigrid; the solve around them is in f64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LevelPrecision {
    /// 32 bits a number.
    #[default]
    F32,
    /// 64 bits a number.
    F64,
}
