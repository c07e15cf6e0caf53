use circulant_kernels::gaussian::cholesky::*;

#[test]
fn a_matrix_known_by_hand() {
    let cholesky = Cholesky::new(vec![4.0, 2.0, 2.0, 5.0], 2);
    assert!((cholesky.log_determinant() - 16.0f64.ln()).abs() < 1e-15);
    let expected = [5.0 / 16.0, -2.0 / 16.0, -2.0 / 16.0, 4.0 / 16.0];
    for (entry, expected) in cholesky.inverse().iter().zip(expected) {
        assert!((entry - expected).abs() < 1e-15);
    }
    assert!((cholesky.inverse_form(&[1.0, 2.0]) - 13.0 / 16.0).abs() < 1e-15);
}

#[test]
fn the_inverse_inverts() {
    let n = 9;
    let entry = |i: usize, j: usize| {
        let spread = 1.0 / (1.0 + i.abs_diff(j) as f64);
        if i == j { 3.0 } else { spread }
    };
    let matrix: Vec<f64> = (0..n * n).map(|at| entry(at / n, at % n)).collect();
    let inverse = Cholesky::new(matrix.clone(), n).inverse();
    for i in 0..n {
        for j in 0..n {
            let sum: f64 = (0..n).map(|k| matrix[i * n + k] * inverse[k * n + j]).sum();
            assert!((sum - f64::from(u8::from(i == j))).abs() < 1e-12);
        }
    }
}

#[test]
fn nan_comes_out_as_nan() {
    let cholesky = Cholesky::new(vec![f64::NAN, 1.0, 1.0, 2.0], 2);
    assert!(cholesky.log_determinant().is_nan());
    assert!(cholesky.inverse().iter().all(|x| x.is_nan()));
    assert!(cholesky.inverse_form(&[1.0, 2.0]).is_nan());
}

#[test]
fn an_infinite_entry_of_the_diagonal_gives_the_limits() {
    let cholesky = Cholesky::new(vec![f64::INFINITY, 1.0, 1.0, 2.0], 2);
    assert_eq!(cholesky.log_determinant(), f64::INFINITY);
    for (entry, limit) in cholesky.inverse().iter().zip([0.0, 0.0, 0.0, 0.5]) {
        assert!((entry - limit).abs() < 1e-15);
    }
    assert!((cholesky.inverse_form(&[1.0, 2.0]) - 2.0).abs() < 1e-15);
}
