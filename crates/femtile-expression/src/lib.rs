//! Part of Femtile.
