//! The program `femtile-bench` as `femtile` runs it.

mod bench;
mod spmv;

use std::process::Command;

fn bench() -> Command {
    Command::new(env!("CARGO_BIN_EXE_femtile-bench"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
