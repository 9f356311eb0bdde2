//! The compiler of kernels, where it is installed.

use femtile_device::cuda::{nvrtc, specialisations};

#[test]
fn shipped_programs_compile_without_spills() {
    let Ok(compiler) = nvrtc() else {
        eprintln!("SKIPPED: shipped_programs_compile_without_spills: NVRTC is not installed");
        return;
    };
    for program in specialisations() {
        for architecture in [(8, 0), (9, 0)] {
            let binary = compiler.compile(&program, architecture).unwrap();
            let resources = binary.resources();
            assert!(!resources.is_empty(), "{}", binary.log);
            assert!(resources.iter().all(|kernel| kernel.spill_bytes == 0 && kernel.registers > 0));
        }
    }
}
