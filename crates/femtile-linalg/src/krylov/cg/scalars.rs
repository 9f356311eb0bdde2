//! The scalar steps of CG where the host can address the device's memory.

use femtile_device::HostDevice;

use super::CgScalars;

/// α = ρ / p·q.
pub(super) fn step_length<D: HostDevice>(scalars: &mut CgScalars<D>) {
    let s = scalars.values.as_mut_slice();
    s[CgScalars::<D>::ALPHA] = s[CgScalars::<D>::RHO] / s[CgScalars::<D>::P_DOT_Q];
}

/// β = r·z / ρ, then ρ = r·z.
pub(super) fn conjugation<D: HostDevice>(scalars: &mut CgScalars<D>) {
    let s = scalars.values.as_mut_slice();
    let (rho, next) = (s[CgScalars::<D>::RHO], s[CgScalars::<D>::R_DOT_Z]);
    s[CgScalars::<D>::BETA] = if rho == 0.0 { 0.0 } else { next / rho };
    s[CgScalars::<D>::RHO] = next;
}

/// One of the scalars.
pub(super) fn get<D: HostDevice>(scalars: &CgScalars<D>, index: usize) -> f64 {
    scalars.values.as_slice()[index]
}

/// Sets one of the scalars.
pub(super) fn set<D: HostDevice>(scalars: &mut CgScalars<D>, index: usize, value: f64) {
    scalars.values.as_mut_slice()[index] = value;
}
