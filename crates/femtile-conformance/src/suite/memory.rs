//! GPUs whose memory is too small: what finds no room goes to the host, and nothing but time is lost.

use femtile::amg::{Amg, AmgConfig, PatchFormat, Smoother};
use femtile::device::{Buffer, Cuda, Device, DeviceError, MemorySpace, MemoryUse};
use femtile::linalg::Preconditioner;
use femtile::linalg::vector::VectorKernels;

use super::Scope;
use super::problems::{Random, laplacian};

/// Returns the same GPU with a separate account and a limit of `bytes`.
fn limited(device: &Cuda, bytes: usize) -> Cuda {
    let limited = Cuda::with_driver(device.driver().clone());
    limited.limit_memory(bytes);
    limited
}

const MIB: usize = 1 << 20;

/// Arrays that find no room are refused, or go to the host where that is allowed and work there as others do.
pub fn arrays_without_room_go_to_the_host(device: &Cuda, _scope: &Scope) {
    let (n, device) = (3 * MIB / 16, limited(device, 3 * MIB));
    let values = Random::new(31).vector::<f64>(n);
    let first = Buffer::from_host(&device, &values).unwrap();
    let second = Buffer::from_host(&device, &values).unwrap();
    let error = Buffer::<f64, _>::zeros(&device, 1).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { needed: 8, free: 0, .. }), "{error}");
    assert_eq!(device.available_bytes(), None);

    device.overflow_to_host(2 * MIB);
    assert_eq!(device.available_bytes(), Some(0));
    let mut third = Buffer::from_host(&device, &values).unwrap();
    let half = 3 * MIB / 2;
    let used = |device, host| MemoryUse { device, host, device_peak: 3 * MIB, host_peak: half };
    assert_eq!(device.memory_use().unwrap(), used(3 * MIB, half));
    let error = Buffer::<u8, _>::zeros(&device, MIB).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { .. }), "the host takes two MiB: {error}");
    device.axpby(&mut third, 2.0, &first, 1.0).unwrap();
    let tripled: Vec<f64> = values.iter().map(|value| 2.0 * value + value).collect();
    assert_eq!(third.to_host().unwrap(), tripled);

    assert!(!third.move_to(MemorySpace::Device).unwrap());
    drop(second);
    let had_room = device.with_reserved_bytes(1, || third.move_to(MemorySpace::Device)).unwrap();
    assert!(!had_room && device.available_bytes() == Some(half));
    assert!(third.move_to(MemorySpace::Device).unwrap());
    assert_eq!(device.memory_use().unwrap(), used(3 * MIB, 0));
    assert!(third.move_to(MemorySpace::Host).unwrap());
    assert_eq!((third.to_host().unwrap(), device.memory_use().unwrap()), (tripled, used(half, half)));
    drop((first, third));
    assert_eq!(device.memory_use().unwrap(), used(0, 0));
}

/// Cycles of levels that find room in part or not at all have the bits of those that do.
pub fn hierarchies_without_room_have_the_same_bits(device: &Cuda, scope: &Scope) {
    let side = scope.side.max(42);
    let n = side * side;
    let mut random = Random::new(32);
    let (parts, r) = (laplacian::<f64>(side, &mut random), random.vector::<f64>(n));
    let patches = Smoother::Patch { inner: 3, format: PatchFormat::FullRowEll };
    for smoother in [AmgConfig::default().smoother, patches] {
        let config = AmgConfig { coarse_rows: 12, smoother, ..AmgConfig::default() };
        let cycle = |device: &Cuda| {
            let mut a = parts.on(device);
            let b = Buffer::from_host(device, &r).unwrap();
            let amg = Amg::<f32, Cuda>::with_memory_limit(&mut a, None, None, &config).unwrap();
            let mut z = Buffer::from_vec(device, vec![f64::NAN; n]).unwrap();
            amg.apply(&mut z, &b).unwrap();
            z.to_host().unwrap()
        };
        let all = limited(device, usize::MAX);
        let expected = cycle(&all);
        let needed = all.memory_use().unwrap().device_peak;
        for limit in [needed, needed * 2 / 3, needed / 3, needed / 10, 0] {
            let device = limited(device, limit);
            device.overflow_to_host(usize::MAX);
            assert!(cycle(&device) == expected, "{limit} of {needed} bytes");
            let used = device.memory_use().unwrap();
            assert!(used.device_peak <= limit && (limit == needed || used.host_peak > 0), "{used:?}");
        }
    }
}
