//! The program `femtile`.

#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: femtile::device::cpu::LargePages = femtile::device::cpu::LargePages;

fn main() -> std::process::ExitCode {
    femtile_cli::main()
}
