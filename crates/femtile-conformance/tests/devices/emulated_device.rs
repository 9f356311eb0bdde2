//! The device on emulated CUDA: recordings, reads in progress, arguments of kernels.

use std::sync::Arc;

use femtile::device::cuda::{CudaTrace, Kernel, Launch, Program, Read, TracedKind, Write};
use femtile::device::{Buffer, Cuda, Device, DeviceError};
use femtile::linalg::vector::VectorKernels;

use crate::emulated_cases::{PLENTY, gpu};

#[test]
fn arrays_of_two_devices_do_not_meet() {
    let test = "arrays_of_two_devices_do_not_meet";
    let (Some(one), Some(other)) = (gpu(test, PLENTY), gpu(test, PLENTY)) else { return };
    let (x, y) = (Buffer::<f64, _>::zeros(&one, 5).unwrap(), Buffer::<f64, _>::zeros(&other, 5).unwrap());
    let error = one.dot(&x, &y).unwrap_err().to_string();
    assert!(error.contains("argument 4 of vector_dot"), "{error}");
}

#[test]
fn work_that_repeats_is_recorded_replayed_and_counted() {
    let Some(device) = gpu("work_that_repeats_is_recorded_replayed_and_counted", PLENTY) else { return };
    let mut x = Buffer::from_vec(&device, vec![1.0f64; 7]).unwrap();
    let y = Buffer::from_vec(&device, vec![1.0f64; 7]).unwrap();
    let (mut recording, mut n_calls) = (Default::default(), 0);
    for round in 1..=4 {
        device
            .repeat(&mut recording, 3, &mut || {
                n_calls += 1;
                device.axpby(&mut x, 1.0, &y, 1.0)
            })
            .unwrap();
        assert_eq!(x.to_host().unwrap(), vec![1.0 + 3.0 * f64::from(round); 7]);
        assert_eq!(device.kernel_launches(), 3 * round as u64);
    }
    assert_eq!(n_calls, 6, "the first round is carried out, the second recorded");
}

#[test]
fn a_trace_has_loads_copies_kernels_and_replays() {
    let Some(device) = gpu("a_trace_has_loads_copies_kernels_and_replays", PLENTY) else { return };
    let trace = Arc::new(CudaTrace::default());
    let device = Cuda::with_driver(trace.driver(device.driver().clone()));
    device.prepare(vec![SHIFT.of::<f32>()]);
    let mut x = Buffer::from_vec(&device, vec![1.0f64; 7]).unwrap();
    let y = Buffer::from_vec(&device, vec![1.0f64; 7]).unwrap();
    let mut recording = Default::default();
    for _ in 0..3 {
        device.repeat(&mut recording, 5, &mut || device.axpby(&mut x, 1.0, &y, 1.0)).unwrap();
    }
    x.to_host().unwrap();
    let (works, n_left_out) = trace.take();
    let n = |kind: TracedKind, is_of: &dyn Fn(&str) -> bool| {
        works.iter().filter(|work| work.kind == kind && is_of(&work.name)).count()
    };
    assert_eq!(n(TracedKind::Load, &|name| name.starts_with("vector_axpby of vector")), 1, "{works:?}");
    assert_eq!(n(TracedKind::Kernel, &|name| name == "vector_axpby"), 5);
    assert_eq!(n(TracedKind::Copy, &|name| name == "copy to the host"), 1);
    let replays: Vec<_> = works.iter().filter(|work| !work.kernels.is_empty()).collect();
    assert_eq!((replays.len(), replays[0].kernels["vector_axpby"], n_left_out), (2, 5, 0), "{works:?}");
    assert!(works.iter().filter(|work| work.kind == TracedKind::Load).all(|load| load.announced.is_none()));
    assert!(trace.take().0.is_empty());
}

#[test]
fn a_read_under_way_brings_the_values_of_the_moment_when_it_began() {
    let Some(device) = gpu("a_read_under_way", PLENTY) else { return };
    let mut x = Buffer::from_vec(&device, vec![1.0f64, 2.0]).unwrap();
    let reading = x.begin_read().unwrap();
    device.fill(&mut x, 5.0).unwrap();
    assert_eq!(device.end_read::<f64>(reading).unwrap(), [1.0, 2.0]);
    assert_eq!(x.to_host().unwrap(), [5.0, 5.0]);
}

static SHIFT: Program = Program {
    name: "shift",
    source: r#"
#include "femtile.cuh"
extern "C" __global__ void shift(T* to, const T* from, u32 n) {
    const u32 i = threadIdx.x;
    if (i < n) to[i] = from[i + 1];
}
"#,
    headers: &[],
};

#[test]
fn a_kernel_that_leaves_its_array_is_named_with_the_place() {
    let Some(device) = gpu("a_kernel_that_leaves_its_array_is_named", PLENTY) else { return };
    let from = Buffer::from_vec(&device, vec![1.0f64; 4]).unwrap();
    let mut to = Buffer::<f64, _>::zeros(&device, 4).unwrap();
    let kernel = Kernel::<(Write<f64>, Read<f64>, u32)>::new("shift");
    let mut run = |n: u32| {
        // SAFETY: the emulator checks what the kernel touches before it does.
        unsafe {
            device.launch(&SHIFT.of::<f64>(), &kernel, Launch::line(1, 32), (to.write(), from.read(), n))
        }
    };
    run(3).unwrap();
    let error = run(4).unwrap_err();
    assert!(matches!(&error, DeviceError::Fault { kernels, .. } if kernels == "shift"));
    assert!(error.to_string().contains("thread (3, 0, 0)") && error.to_string().contains("out of bounds"));
}

#[test]
fn parameters_other_than_those_of_the_source_are_refused() {
    let Some(device) = gpu("parameters_other_than_those_of_the_source_are_refused", PLENTY) else { return };
    let from = Buffer::from_vec(&device, vec![1.0f64; 4]).unwrap();
    let mut to = Buffer::<f64, _>::zeros(&device, 4).unwrap();
    let kernel = Kernel::<(Write<f64>, Read<f64>, u64)>::new("shift");
    // SAFETY: the launch is refused.
    let error = unsafe {
        device.launch(&SHIFT.of::<f64>(), &kernel, Launch::line(1, 32), (to.write(), from.read(), 3))
    };
    assert!(error.unwrap_err().to_string().contains("parameter 2 of shift is `unsigned int`"));
}
