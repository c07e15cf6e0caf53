use circulant_kernels::norms::convolution::*;

#[test]
fn roots_of_unity_agree_with_the_standard_library() {
    for n in 1..200 {
        for k in 0..n {
            let [cosine, sine] = unit_root(k, n);
            let (s, c) = (std::f64::consts::TAU * k as f64 / n as f64).sin_cos();
            // The argument of the standard library is itself rounded, by up to 10 eps.
            assert!((cosine - c).abs() < 14.0 * f64::EPSILON, "{k}/{n}");
            assert!((sine - s).abs() < 14.0 * f64::EPSILON, "{k}/{n}");
        }
    }
    assert_eq!(unit_root(1, 2), [-1.0, 0.0]);
    assert_eq!(unit_root(3, 4)[1], -1.0);
}
