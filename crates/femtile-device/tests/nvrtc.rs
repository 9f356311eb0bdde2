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

#[test]
fn an_architecture_that_nvrtc_does_not_know_gets_text_for_the_driver() {
    let Ok(compiler) = nvrtc() else {
        eprintln!("SKIPPED: an_architecture_that_nvrtc_does_not_know: NVRTC is not installed");
        return;
    };
    let binary = compiler.compile(&specialisations()[0], (99, 0)).unwrap();
    assert!(String::from_utf8_lossy(&binary.code).contains(".visible .entry probe_copy"));
    let refused = compiler.compile(&specialisations()[0], (2, 0)).unwrap_err().to_string();
    assert!(refused.contains("capability 2.0"), "{refused}");
}
