//! The formulas as a loop over the points with the mathematical library.

const F: f64 = 96485.3415;
const RTF: f64 = 8314.472 * 310.0 / F;
const CAPACITANCE: f64 = 0.185;
const V_C: f64 = 0.016404;
const V_SR: f64 = 0.001094;
const V_SS: f64 = 0.00005468;
const K_O: f64 = 5.4;
const NA_O: f64 = 140.0;
const CA_O: f64 = 2.0;

/// One step of all points.
pub fn run(next: &mut [Vec<f64>], states: &[Vec<f64>], dt: f64) {
    for i in 0..states[0].len() {
        let at: [f64; 19] = std::array::from_fn(|k| states[k][i]);
        let values = point(at, dt);
        for (next, value) in next.iter_mut().zip(values) {
            next[i] = value;
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + x.exp())
}

fn gate(value: f64, steady: f64, tau: f64, dt: f64) -> f64 {
    steady - (steady - value) * (-dt / tau).exp()
}

#[rustfmt::skip]
fn point(state: [f64; 19], dt: f64) -> [f64; 19] {
    let [v, xr1, xr2, xs, m, h, j, d, f, f2, fcass, s, r, ca_i, r_bar, ca_sr, ca_ss, na_i, k_i] = state;
    let e_na = RTF * (NA_O / na_i).ln();
    let e_k = RTF * (K_O / k_i).ln();
    let e_ks = RTF * ((K_O + 0.03 * NA_O) / (k_i + 0.03 * na_i)).ln();
    let e_ca = 0.5 * RTF * (CA_O / ca_i).ln();
    let a_k1 = 0.1 * sigmoid(0.06 * (v - e_k - 200.0));
    let b_k1 = (3.0 * (0.0002 * (v - e_k + 100.0)).exp() + (0.1 * (v - e_k - 10.0)).exp())
        * sigmoid(-0.5 * (v - e_k));
    let i_k1 = 5.405 * a_k1 / (a_k1 + b_k1) * (v - e_k);
    let i_to = 0.294 * r * s * (v - e_k);
    let i_kr = 0.153 * xr1 * xr2 * (v - e_k);
    let i_ks = 0.392 * xs * xs * (v - e_ks);
    let v_l = 2.0 * (v - 15.0) / RTF;
    let i_cal = 3.98e-5 * d * f * f2 * fcass * 2.0 * F * (0.25 * v_l.exp() * ca_ss - CA_O) * v_l / v_l.exp_m1();
    let i_na = 14.838 * m * m * m * h * j * (v - e_na);
    let back = (-0.65 * v / RTF).exp();
    let i_naca = 1000.0 * ((0.35 * v / RTF).exp() * na_i * na_i * na_i * CA_O - back * NA_O * NA_O * NA_O * ca_i * 2.5)
        / ((87.5 * 87.5 * 87.5 + NA_O * NA_O * NA_O) * (1.38 + CA_O) * (1.0 + 0.1 * back));
    let i_nak = 2.724 * K_O / (K_O + 1.0) * na_i / (na_i + 40.0)
        / (1.0 + 0.1245 * (-0.1 * v / RTF).exp() + 0.0353 * (-v / RTF).exp());
    let i_pca = 0.1238 * ca_i / (ca_i + 0.0005);
    let i_pk = 0.0146 * (v - e_k) * sigmoid((25.0 - v) / 5.98);
    let i_bna = 0.00029 * (v - e_na);
    let i_bca = 0.000592 * (v - e_ca);
    let k_casr = 2.5 - 1.5 / (1.0 + (1.5 / ca_sr) * (1.5 / ca_sr));
    let (k1, k2) = (0.15 / k_casr, 0.045 * k_casr);
    let open = k1 * ca_ss * ca_ss * r_bar / (0.06 + k1 * ca_ss * ca_ss);
    let i_rel = 0.102 * open * (ca_sr - ca_ss);
    let i_up = 0.006375 / (1.0 + (0.00025 / ca_i) * (0.00025 / ca_i));
    let i_leak = 0.00036 * (ca_sr - ca_i);
    let i_xfer = 0.0038 * (ca_ss - ca_i);
    let buffer_i = 1.0 / (1.0 + 0.2 * 0.001 / ((ca_i + 0.001) * (ca_i + 0.001)));
    let buffer_sr = 1.0 / (1.0 + 10.0 * 0.3 / ((ca_sr + 0.3) * (ca_sr + 0.3)));
    let buffer_ss = 1.0 / (1.0 + 0.4 * 0.00025 / ((ca_ss + 0.00025) * (ca_ss + 0.00025)));

    let xr1_inf = sigmoid((-26.0 - v) / 7.0);
    let tau_xr1 = 450.0 * sigmoid((-45.0 - v) / 10.0) * 6.0 * sigmoid((v + 30.0) / 11.5);
    let xr2_inf = sigmoid((v + 88.0) / 24.0);
    let tau_xr2 = 3.0 * sigmoid((-60.0 - v) / 20.0) * 1.12 * sigmoid((v - 60.0) / 20.0);
    let xs_inf = sigmoid((-5.0 - v) / 14.0);
    let tau_xs = 1400.0 / (1.0 + ((5.0 - v) / 6.0).exp()).sqrt() * sigmoid((v - 35.0) / 15.0) + 80.0;
    let m_root = sigmoid((-56.86 - v) / 9.03);
    let tau_m = sigmoid((-60.0 - v) / 5.0) * (0.1 * sigmoid((v + 35.0) / 5.0) + 0.1 * sigmoid((v - 50.0) / 200.0));
    let hj_root = sigmoid((v + 71.55) / 7.43);
    let hj_inf = hj_root * hj_root;
    let (a_h, b_h, a_j, b_j) = if v < -40.0 {
        (
            0.057 * (-(v + 80.0) / 6.8).exp(),
            2.7 * (0.079 * v).exp() + 3.1e5 * (0.3485 * v).exp(),
            (-2.5428e4 * (0.2444 * v).exp() - 6.948e-6 * (-0.04391 * v).exp()) * (v + 37.78)
                * sigmoid(0.311 * (v + 79.23)),
            0.02424 * (-0.01052 * v).exp() * sigmoid(-0.1378 * (v + 40.14)),
        )
    } else {
        (0.0, 0.77 / 0.13 * sigmoid((v + 10.66) / -11.1), 0.0, 0.6 * (0.057 * v).exp() * sigmoid(-0.1 * (v + 32.0)))
    };
    let d_inf = sigmoid((-8.0 - v) / 7.5);
    let tau_d = (1.4 * sigmoid((-35.0 - v) / 13.0) + 0.25) * 1.4 * sigmoid((v + 5.0) / 5.0)
        + sigmoid((50.0 - v) / 20.0);
    let f_inf = sigmoid((v + 20.0) / 7.0);
    let square = (v + 27.0) * (v + 27.0);
    let closing = sigmoid((v + 30.0) / 10.0);
    let tau_f = 1102.5 * (-square / 225.0).exp() + 200.0 * sigmoid((13.0 - v) / 10.0) + 180.0 * closing + 20.0;
    let f2_inf = 0.67 * sigmoid((v + 35.0) / 7.0) + 0.33;
    let tau_f2 = 562.0 * (-square / 240.0).exp() + 31.0 * sigmoid((25.0 - v) / 10.0) + 80.0 * closing;
    let cass = 1.0 / (1.0 + (ca_ss / 0.05) * (ca_ss / 0.05));
    let s_inf = sigmoid((v + 20.0) / 5.0);
    let tau_s = 85.0 * (-(v + 45.0) * (v + 45.0) / 320.0).exp() + 5.0 * sigmoid((v - 20.0) / 5.0) + 3.0;
    let r_inf = sigmoid((20.0 - v) / 6.0);
    let tau_r = 9.5 * (-(v + 40.0) * (v + 40.0) / 1800.0).exp() + 0.8;

    let total = i_k1 + i_to + i_kr + i_ks + i_cal + i_nak + i_na + i_bna + i_naca + i_bca + i_pk + i_pca;
    [
        v - dt * total,
        gate(xr1, xr1_inf, tau_xr1, dt),
        gate(xr2, xr2_inf, tau_xr2, dt),
        gate(xs, xs_inf, tau_xs, dt),
        gate(m, m_root * m_root, tau_m, dt),
        gate(h, hj_inf, 1.0 / (a_h + b_h), dt),
        gate(j, hj_inf, 1.0 / (a_j + b_j), dt),
        gate(d, d_inf, tau_d, dt),
        gate(f, f_inf, tau_f, dt),
        gate(f2, f2_inf, tau_f2, dt),
        gate(fcass, 0.6 * cass + 0.4, 80.0 * cass + 2.0, dt),
        gate(s, s_inf, tau_s, dt),
        gate(r, r_inf, tau_r, dt),
        ca_i + dt * buffer_i
            * ((i_leak - i_up) * V_SR / V_C + i_xfer - (i_bca + i_pca - 2.0 * i_naca) * CAPACITANCE / (2.0 * V_C * F)),
        r_bar + dt * (-k2 * ca_ss * r_bar + 0.005 * (1.0 - r_bar)),
        ca_sr + dt * buffer_sr * (i_up - i_rel - i_leak),
        ca_ss + dt * buffer_ss
            * (-i_cal * CAPACITANCE / (2.0 * V_SS * F) + i_rel * V_SR / V_SS - i_xfer * V_C / V_SS),
        na_i - dt * (i_na + i_bna + 3.0 * i_nak + 3.0 * i_naca) * CAPACITANCE / (V_C * F),
        k_i - dt * (i_k1 + i_to + i_kr + i_ks - 2.0 * i_nak + i_pk) * CAPACITANCE / (V_C * F),
    ]
}
