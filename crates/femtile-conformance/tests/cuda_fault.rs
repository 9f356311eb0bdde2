//! A kernel that faults on a real GPU: the error names it, and the process goes on. A process of its own, for a GPU
//! whose kernel has faulted serves its process no more.

use femtile::device::cuda::{Kernel, Launch, Program, Write};
use femtile::device::{Buffer, Cuda, DeviceError};

static STRAY: Program = Program {
    name: "stray",
    source: "#include \"femtile.cuh\"\nextern \"C\" __global__ void stray(double* to) { to[threadIdx.x] = 1.0; }\n",
    headers: &[],
};

#[test]
fn a_kernel_that_faults_is_named_and_the_process_goes_on() {
    let device = match Cuda::new(0) {
        Ok(device) => device,
        Err(error) => {
            return eprintln!("SKIPPED: tests on a real GPU: {error}");
        }
    };
    let before = Buffer::from_vec(&device, vec![1.0f64; 3]).unwrap();
    let computed = before.to_host().unwrap();
    let kernel = Kernel::<(Write<f64>,)>::new("stray");
    // SAFETY: none: the kernel writes through a null pointer, which the GPU notices.
    unsafe { device.launch(&STRAY.of::<f64>(), &kernel, Launch::line(1, 1), (Write::none(),)) }.unwrap();
    let error = device.synchronize().unwrap_err();
    assert!(matches!(&error, DeviceError::Fault { kernels, .. } if kernels == "stray"), "{error}");
    assert!(before.to_host().is_err());
    assert_eq!(computed, [1.0; 3]);
}
