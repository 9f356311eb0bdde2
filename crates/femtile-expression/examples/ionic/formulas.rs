//! The formulas as texts.

/// States and values near rest.
pub const STATES: &[(&str, f64)] = &[
    ("V", -85.23),
    ("Xr1", 0.00621),
    ("Xr2", 0.4712),
    ("Xs", 0.0095),
    ("m", 0.00172),
    ("h", 0.7444),
    ("j", 0.7045),
    ("d", 3.373e-5),
    ("f", 0.7888),
    ("f2", 0.9755),
    ("fCass", 0.9953),
    ("s", 0.999998),
    ("r", 2.42e-8),
    ("Ca_i", 0.000126),
    ("R_bar", 0.9073),
    ("Ca_SR", 3.64),
    ("Ca_ss", 0.00036),
    ("Na_i", 8.604),
    ("K_i", 136.89),
];

pub const CONSTANTS: &[(&str, &str)] = &[
    ("F", "96485.3415"),
    ("RTF", "8314.472*310/F"),
    ("capacitance", "0.185"),
    ("V_c", "0.016404"),
    ("V_sr", "0.001094"),
    ("V_ss", "0.00005468"),
    ("K_o", "5.4"),
    ("Na_o", "140"),
    ("Ca_o", "2"),
    ("root_K_o", "sqrt(K_o/5.4)"),
];

pub const DEFINITIONS: &[(&str, &str)] = &[
    ("E_Na", "RTF*log(Na_o/Na_i)"),
    ("E_K", "RTF*log(K_o/K_i)"),
    ("E_Ks", "RTF*log((K_o + 0.03*Na_o)/(K_i + 0.03*Na_i))"),
    ("E_Ca", "0.5*RTF*log(Ca_o/Ca_i)"),
    ("a_K1", "0.1/(1 + exp(0.06*(V - E_K - 200)))"),
    ("b_K1", "(3*exp(0.0002*(V - E_K + 100)) + exp(0.1*(V - E_K - 10)))/(1 + exp(-0.5*(V - E_K)))"),
    ("I_K1", "5.405*root_K_o*a_K1/(a_K1 + b_K1)*(V - E_K)"),
    ("I_to", "0.294*r*s*(V - E_K)"),
    ("I_Kr", "0.153*root_K_o*Xr1*Xr2*(V - E_K)"),
    ("I_Ks", "0.392*Xs^2*(V - E_Ks)"),
    ("V_L", "2*(V - 15)/RTF"),
    ("I_CaL", "3.98e-5*d*f*f2*fCass*2*F*(0.25*exp(V_L)*Ca_ss - Ca_o)/exprel(V_L)"),
    ("I_Na", "14.838*m^3*h*j*(V - E_Na)"),
    (
        "I_NaCa",
        "1000*(exp(0.35*V/RTF)*Na_i^3*Ca_o - exp(-0.65*V/RTF)*Na_o^3*Ca_i*2.5)/((87.5^3 + Na_o^3)*(1.38 + Ca_o)*(1 + 0.1*exp(-0.65*V/RTF)))",
    ),
    ("I_NaK", "2.724*K_o/(K_o + 1)*Na_i/(Na_i + 40)/(1 + 0.1245*exp(-0.1*V/RTF) + 0.0353*exp(-V/RTF))"),
    ("I_pCa", "0.1238*Ca_i/(Ca_i + 0.0005)"),
    ("I_pK", "0.0146*(V - E_K)/(1 + exp((25 - V)/5.98))"),
    ("I_bNa", "0.00029*(V - E_Na)"),
    ("I_bCa", "0.000592*(V - E_Ca)"),
    ("k_CaSR", "2.5 - 1.5/(1 + (1.5/Ca_SR)^2)"),
    ("k1", "0.15/k_CaSR"),
    ("k2", "0.045*k_CaSR"),
    ("O", "k1*Ca_ss^2*R_bar/(0.06 + k1*Ca_ss^2)"),
    ("I_rel", "0.102*O*(Ca_SR - Ca_ss)"),
    ("I_up", "0.006375/(1 + (0.00025/Ca_i)^2)"),
    ("I_leak", "0.00036*(Ca_SR - Ca_i)"),
    ("I_xfer", "0.0038*(Ca_ss - Ca_i)"),
    ("buffer_i", "1/(1 + 0.2*0.001/(Ca_i + 0.001)^2)"),
    ("buffer_sr", "1/(1 + 10*0.3/(Ca_SR + 0.3)^2)"),
    ("buffer_ss", "1/(1 + 0.4*0.00025/(Ca_ss + 0.00025)^2)"),
    ("tau_m", "1/(1 + exp((-60 - V)/5))*(0.1/(1 + exp((V + 35)/5)) + 0.1/(1 + exp((V - 50)/200)))"),
    ("a_h", "if(V < -40, 0.057*exp(-(V + 80)/6.8), 0)"),
    ("b_h", "if(V < -40, 2.7*exp(0.079*V) + 3.1e5*exp(0.3485*V), 0.77/(0.13*(1 + exp((V + 10.66)/-11.1))))"),
    (
        "a_j",
        "if(V < -40, (-2.5428e4*exp(0.2444*V) - 6.948e-6*exp(-0.04391*V))*(V + 37.78)/(1 + exp(0.311*(V + 79.23))), 0)",
    ),
    (
        "b_j",
        "if(V < -40, 0.02424*exp(-0.01052*V)/(1 + exp(-0.1378*(V + 40.14))), 0.6*exp(0.057*V)/(1 + exp(-0.1*(V + 32))))",
    ),
    ("hj_inf", "1/(1 + exp((V + 71.55)/7.43))^2"),
    ("tau_d", "(1.4/(1 + exp((-35 - V)/13)) + 0.25)*1.4/(1 + exp((V + 5)/5)) + 1/(1 + exp((50 - V)/20))"),
    ("tau_f", "1102.5*exp(-(V + 27)^2/225) + 200/(1 + exp((13 - V)/10)) + 180/(1 + exp((V + 30)/10)) + 20"),
    ("tau_f2", "562*exp(-(V + 27)^2/240) + 31/(1 + exp((25 - V)/10)) + 80/(1 + exp((V + 30)/10))"),
    ("cass", "1/(1 + (Ca_ss/0.05)^2)"),
];

/// Gates: steady state and time constant.
pub const GATES: &[(&str, &str, &str)] = &[
    ("Xr1", "1/(1 + exp((-26 - V)/7))", "450/(1 + exp((-45 - V)/10))*6/(1 + exp((V + 30)/11.5))"),
    ("Xr2", "1/(1 + exp((V + 88)/24))", "3/(1 + exp((-60 - V)/20))*1.12/(1 + exp((V - 60)/20))"),
    ("Xs", "1/(1 + exp((-5 - V)/14))", "1400/sqrt(1 + exp((5 - V)/6))/(1 + exp((V - 35)/15)) + 80"),
    ("m", "1/(1 + exp((-56.86 - V)/9.03))^2", "tau_m"),
    ("h", "hj_inf", "1/(a_h + b_h)"),
    ("j", "hj_inf", "1/(a_j + b_j)"),
    ("d", "1/(1 + exp((-8 - V)/7.5))", "tau_d"),
    ("f", "1/(1 + exp((V + 20)/7))", "tau_f"),
    ("f2", "0.67/(1 + exp((V + 35)/7)) + 0.33", "tau_f2"),
    ("fCass", "0.6*cass + 0.4", "80*cass + 2"),
    ("s", "1/(1 + exp((V + 20)/5))", "85*exp(-(V + 45)^2/320) + 5/(1 + exp((V - 20)/5)) + 3"),
    ("r", "1/(1 + exp((20 - V)/6))", "9.5*exp(-(V + 40)^2/1800) + 0.8"),
];

/// Rates of the other states.
pub const RATES: &[(&str, &str)] = &[
    ("V", "-(I_K1 + I_to + I_Kr + I_Ks + I_CaL + I_NaK + I_Na + I_bNa + I_NaCa + I_bCa + I_pK + I_pCa)"),
    (
        "Ca_i",
        "buffer_i*((I_leak - I_up)*V_sr/V_c + I_xfer - (I_bCa + I_pCa - 2*I_NaCa)*capacitance/(2*V_c*F))",
    ),
    ("R_bar", "-k2*Ca_ss*R_bar + 0.005*(1 - R_bar)"),
    ("Ca_SR", "buffer_sr*(I_up - I_rel - I_leak)"),
    ("Ca_ss", "buffer_ss*(-I_CaL*capacitance/(2*V_ss*F) + I_rel*V_sr/V_ss - I_xfer*V_c/V_ss)"),
    ("Na_i", "-(I_Na + I_bNa + 3*I_NaK + 3*I_NaCa)*capacitance/(V_c*F)"),
    ("K_i", "-(I_K1 + I_to + I_Kr + I_Ks - 2*I_NaK + I_pK)*capacitance/(V_c*F)"),
];
