//! The devices of a survey.

use femtile::device::cuda::gpus;
use femtile::device::{Cpu, Cuda};

use super::arguments::ProductOptions;
use femtile_bench::Failure;

/// A device of a survey.
pub enum Device {
    Cpu(Cpu),
    Cuda(Cuda),
}

/// Opens the requested devices; also returns the reason `auto` uses no GPU.
pub fn open(options: &ProductOptions) -> Result<(Vec<Device>, Option<String>), Failure> {
    let cpu = || Cpu::new(options.threads).map(Device::Cpu);
    let cuda = |ordinal| Cuda::new(ordinal).map(Device::Cuda);
    let number = options.device.strip_prefix("cuda:").map(str::parse);
    match (options.device.as_str(), number) {
        ("auto", _) => {
            let gpu = match gpus() {
                Ok(found) if found.is_empty() => Err("there is none".into()),
                Ok(_) => cuda(0).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let mut devices = vec![cpu()?];
            let reason = match gpu {
                Ok(gpu) => {
                    devices.push(gpu);
                    None
                }
                Err(reason) => Some(reason),
            };
            Ok((devices, reason))
        }
        ("cpu", _) => Ok((vec![cpu()?], None)),
        ("cuda", _) => Ok((vec![cuda(0)?], None)),
        (_, Some(Ok(ordinal))) => Ok((vec![cuda(ordinal)?], None)),
        (other, _) => Err(Failure::Argument(format!(
            "--device: there is no device `{other}`; use auto, cpu, cuda or cuda:N"
        ))),
    }
}
