use circulant_kernels::real::*;
use circulant_kernels::vector::Lanes;

/// Four units in the last place of an f32.
const TANH_RELATIVE: f64 = 4.0 * 1.2e-7;

#[test]
fn tanh_of_f32_is_accurate_everywhere() {
    for i in -40_000..40_000 {
        for x in [i as f32 * 3e-4, i as f32 * 1e-7, i as f32 * 1e-30] {
            let lanes: Lanes<f32, 8> = f32::tanh_lanes(Lanes([x; 8]));
            let exact = f64::from(x).tanh();
            let error = (f64::from(lanes.0[0]) - exact).abs();
            assert!(
                error <= TANH_RELATIVE * exact.abs(),
                "{x}: {} {exact}",
                lanes.0[0]
            );
        }
    }
    for (x, y) in [
        (f32::INFINITY, 1.0),
        (f32::NEG_INFINITY, -1.0),
        (100.0, 1.0),
    ] {
        let lanes: Lanes<f32, 8> = f32::tanh_lanes(Lanes([x; 8]));
        assert!((f64::from(lanes.0[0]) - y).abs() <= TANH_RELATIVE);
        assert!(lanes.0[0].abs() <= 1.0);
    }
}
