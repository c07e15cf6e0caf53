//! Matrices with known eigenvalues.

use super::*;

/// `A = (I - 2 u u^t) diag(values) (I - 2 u u^t)`, by its products.
fn reflected(values: Vec<f64>) -> impl Fn(&[f64]) -> Result<Vec<f64>, CurvatureError> {
    let mut u = InitialNumbers::new(99).normal(values.len(), 1.0);
    let length = norm(&u);
    scale(&mut u, length.recip());
    move |v: &[f64]| {
        let mut w = v.to_vec();
        let part = dot(&u, &w);
        add(&mut w, -2.0 * part, &u);
        w.iter_mut().zip(&values).for_each(|(w, value)| *w *= value);
        let part = dot(&u, &w);
        add(&mut w, -2.0 * part, &u);
        Ok(w)
    }
}

fn config(method: Method) -> EigenvalueConfig {
    EigenvalueConfig {
        method,
        tolerance: 1e-7,
        max_products: 5000,
        seed: 3,
    }
}

#[test]
fn both_methods_find_the_largest_magnitude_with_its_sign() {
    for method in [
        Method::Lanczos { basis: 200 },
        Method::Lanczos { basis: 8 },
        Method::Lanczos { basis: 4 },
        Method::Power,
    ] {
        let mut values: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
        values[17] = -1.2;
        let product = reflected(values);
        let found = dominant(100, Extreme::Magnitude, &config(method), &product).unwrap();
        assert!((found.value + 1.2).abs() < 1e-12, "{method:?} {found:?}");
        assert!(found.converged && found.residual < 1.2e-7, "{method:?}");
        let image = product(&found.vector).unwrap();
        assert!(residual(&found.vector, &image, -1.2) < 2e-7, "{method:?}");
        if method != Method::Power {
            let found = dominant(100, Extreme::Largest, &config(method), &product).unwrap();
            assert!((found.value - 0.99).abs() < 1e-10, "{method:?}");
        }
    }
}

#[test]
fn small_degenerate_and_zero_matrices() {
    for size in 1..6 {
        let values = vec![2.5; size];
        let found = dominant(
            size,
            Extreme::Magnitude,
            &config(Method::Lanczos { basis: 32 }),
            reflected(values),
        )
        .unwrap();
        assert!((found.value - 2.5).abs() < 1e-14, "{size}");
        assert!(found.converged && found.products <= size + 1);
    }
    for method in [Method::Lanczos { basis: 5 }, Method::Power] {
        let zeros = reflected(vec![0.0; 9]);
        let found = dominant(9, Extreme::Magnitude, &config(method), zeros).unwrap();
        assert_eq!((found.value, found.residual), (0.0, 0.0));
        assert!(found.converged);
    }
}

/// An unfinished search says so, and its residual still bounds the error.
#[test]
fn an_unfinished_search_is_not_converged() {
    let values: Vec<f64> = (0..500).map(|i| f64::from(i) / 500.0).collect();
    for method in [Method::Lanczos { basis: 10 }, Method::Power] {
        let config = EigenvalueConfig {
            max_products: 7,
            ..config(method)
        };
        let product = reflected(values.clone());
        let found = dominant(500, Extreme::Magnitude, &config, product).unwrap();
        assert!(!found.converged);
        assert_eq!(found.products, 7);
        let nearest = values
            .iter()
            .map(|value| (value - found.value).abs())
            .fold(f64::INFINITY, f64::min);
        assert!(nearest <= found.residual);
    }
}

#[test]
fn settings_out_of_range_are_errors() {
    let wrong = [
        EigenvalueConfig {
            tolerance: 0.0,
            ..EigenvalueConfig::default()
        },
        EigenvalueConfig {
            tolerance: f64::NAN,
            ..EigenvalueConfig::default()
        },
        EigenvalueConfig {
            max_products: 1,
            ..EigenvalueConfig::default()
        },
        config(Method::Lanczos { basis: 3 }),
    ];
    for config in wrong {
        let error = dominant(3, Extreme::Largest, &config, |v| Ok(v.to_vec())).unwrap_err();
        assert!(matches!(error, CurvatureError::Setting { .. }), "{error}");
    }
}

/// The same seed gives the same bytes.
#[test]
fn searches_repeat() {
    let search = || {
        let values: Vec<f64> = (0..40).map(f64::from).collect();
        let config = config(Method::Lanczos { basis: 8 });
        dominant(40, Extreme::Largest, &config, reflected(values)).unwrap()
    };
    assert_eq!(search(), search());
}
