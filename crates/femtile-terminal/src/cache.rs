use std::path::PathBuf;

use etcetera::{BaseStrategy, choose_base_strategy};

/// Returns the folder of what programs keep between runs: the one that `FEMTILE_CACHE` names, else `femtile` in the user's
/// cache folder; none if the variable is empty.
pub fn cache_folder() -> Option<PathBuf> {
    match std::env::var_os("FEMTILE_CACHE") {
        Some(named) if named.is_empty() => None,
        Some(named) => Some(named.into()),
        None => choose_base_strategy().ok().map(|base| base.cache_dir().join("femtile")),
    }
}
