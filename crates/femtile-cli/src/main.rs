//! Part of Femtile.
fn main() {}
