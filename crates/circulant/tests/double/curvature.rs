//! Products and eigenvalues against the explicit matrices of small networks, which hyper-dual numbers give exactly.

use crate::common;
use crate::common::{double, numbers};
use crate::hyper_dual::{HyperDual, hessian, jacobian_columns};
use crate::perceptron::{
    CLASSES, HIDDEN, INPUTS, LABELS, Perceptron, curvature, inputs, linear, objective,
    oracle_gauss_newton, oracle_loss,
};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor};
use circulant::curvature::{
    Curvature, CurvatureError, CurvatureMatrix, EigenvalueConfig, Method, Objective, Stencil,
    Subspace,
};
use faer::{Mat, Side};

/// Far more than the error of the stencils (see `STENCIL_ERRORS`).
const TOLERANCE: f64 = 1e-6;

/// Relative errors that the analysis of the step promises, with a digit to spare for the size of a network.
const STENCIL_ERRORS: [(Stencil, f64); 2] = [(Stencil::Second, 1e-9), (Stencil::Fourth, 1e-11)];

fn explicit(operator: CurvatureMatrix, parameters: &[f64]) -> Vec<f64> {
    match operator {
        CurvatureMatrix::Hessian => hessian(parameters, oracle_loss),
        CurvatureMatrix::GaussNewton => oracle_gauss_newton(parameters),
    }
}

fn times(matrix: &[f64], v: &[f64]) -> Vec<f64> {
    matrix
        .chunks_exact(v.len())
        .map(|row| dot(row, v))
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `norm(got - expected)/norm(expected)`.
fn relative(got: &[f64], expected: &[f64]) -> f64 {
    let difference: Vec<f64> = got.iter().zip(expected).map(|(a, b)| a - b).collect();
    (dot(&difference, &difference) / dot(expected, expected)).sqrt()
}

fn eigenvalues(matrix: &[f64]) -> Vec<f64> {
    let size = matrix.len().isqrt();
    let matrix = Mat::from_fn(size, size, |i, j| {
        (matrix[i * size + j] + matrix[j * size + i]) / 2.0
    });
    matrix
        .self_adjoint_eigenvalues(Side::Lower)
        .expect("a small matrix converges")
}

const BOTH: [CurvatureMatrix; 2] = [CurvatureMatrix::Hessian, CurvatureMatrix::GaussNewton];

#[test]
fn products_are_those_of_the_explicit_matrices() {
    for operator in BOTH {
        for (stencil, error) in STENCIL_ERRORS {
            assert!(error < TOLERANCE);
            let curvature = curvature(&Subspace::all()).with_stencil(stencil);
            let matrix = explicit(operator, curvature.parameters());
            // Random directions, unit vectors, and lengths far from 1.
            let size = curvature.dimension();
            let mut vectors: Vec<Vec<f64>> = (0..4).map(|seed| numbers(20 + seed, size)).collect();
            vectors.extend([1e-9, 1e9].map(|scale| vectors[0].iter().map(|v| scale * v).collect()));
            vectors.extend(
                (0..size).map(|i| (0..size).map(|j| f64::from(u8::from(i == j))).collect()),
            );
            let gap = |v: &Vec<f64>| {
                let got = curvature.product(operator, v).unwrap();
                relative(&got, &times(&matrix, v))
            };
            let worst = vectors.iter().map(gap).fold(0.0, f64::max);
            assert!(worst < error, "{operator:?} {stencil:?}: {worst:e}");
        }
    }
}

#[test]
fn loss_and_gradient_are_exact() {
    let curvature = curvature(&Subspace::all());
    let theta = curvature.parameters();
    let constants: Vec<_> = theta.iter().copied().map(HyperDual::constant).collect();
    let loss = curvature.loss().unwrap();
    assert!((loss - oracle_loss(&constants).value).abs() < 1e-14);
    let gradient = jacobian_columns(theta, |x| vec![oracle_loss(x)]).concat();
    assert!(relative(&curvature.gradient().unwrap(), &gradient) < 1e-13);
}

/// A linear model: the Hessian is the Gauss-Newton matrix, `sum_i (diag(p_i) - p_i p_i^t) (x) x_i x_i^t/N`.
#[test]
fn a_linear_model_has_one_curvature() {
    let device = double().autodiff();
    let mut model = linear(5, INPUTS, CLASSES, &device);
    model.bias = None;
    let weights = common::host(model.weight.val());
    let x = inputs();
    let objective = Objective::cross_entropy(LABELS, |model: &Linear, examples| {
        model.forward(x.clone().slice(examples))
    });
    let curvature = Curvature::new(model, objective, &Subspace::all()).unwrap();
    let mut matrix = vec![0.0; (INPUTS * CLASSES).pow(2)];
    for x in numbers(7, LABELS.len() * INPUTS).chunks_exact(INPUTS) {
        let logit = |c: usize| {
            (0..INPUTS)
                .map(|i| x[i] * weights[i * CLASSES + c])
                .sum::<f64>()
        };
        let sum: f64 = (0..CLASSES).map(|c| logit(c).exp()).sum();
        let p = |c: usize| logit(c).exp() / sum;
        for (position, entry) in matrix.iter_mut().enumerate() {
            let (row, column) = (position / (INPUTS * CLASSES), position % (INPUTS * CLASSES));
            let (a, b) = (row % CLASSES, column % CLASSES);
            let same = f64::from(u8::from(a == b));
            let pixels = x[row / CLASSES] * x[column / CLASSES];
            *entry += p(a) * (same - p(b)) * pixels / LABELS.len() as f64;
        }
    }
    let v = numbers(31, INPUTS * CLASSES);
    for operator in BOTH {
        let gap = relative(
            &curvature.product(operator, &v).unwrap(),
            &times(&matrix, &v),
        );
        assert!(gap < 1e-9, "{operator:?} {gap:e}");
    }
}

#[test]
fn eigenvalues_are_those_of_the_explicit_matrices() {
    for operator in BOTH {
        let curvature = curvature(&Subspace::all());
        let values = eigenvalues(&explicit(operator, curvature.parameters()));
        let (lowest, highest) = (values[0], values[values.len() - 1]);
        let expected = if operator == CurvatureMatrix::Hessian && -lowest > highest {
            lowest
        } else {
            highest
        };
        for method in [
            Method::Lanczos { basis: 32 },
            Method::Lanczos { basis: 6 },
            Method::Power,
        ] {
            let config = EigenvalueConfig {
                method,
                tolerance: 1e-5,
                max_products: 2000,
                seed: 1,
            };
            let found = curvature.dominant_eigenvalue(operator, &config).unwrap();
            assert!(found.converged, "{operator:?} {method:?}");
            let gap = (found.value - expected).abs() / expected.abs();
            assert!(gap < 1e-8, "{operator:?} {method:?}: {gap:e}");
            assert!(
                (found.value - expected).abs() <= found.residual,
                "{operator:?} {method:?}"
            );
        }
    }
}

#[test]
fn a_subspace_is_a_block() {
    let all = curvature(&Subspace::all());
    let some = curvature(&Subspace::named(["output.bias", "hidden.weight"]));
    // Rows and columns of the block: parameters stay in the order of the module.
    let wanted: Vec<usize> = all
        .paths()
        .filter(|(path, _)| ["hidden.weight", "output.bias"].contains(path))
        .flat_map(|(_, range)| range)
        .collect();
    assert_eq!(some.dimension(), wanted.len());
    for operator in BOTH {
        let matrix = explicit(operator, all.parameters());
        let size = all.dimension();
        let block: Vec<f64> = wanted
            .iter()
            .flat_map(|i| {
                wanted
                    .iter()
                    .map(|j| matrix[i * size + j])
                    .collect::<Vec<_>>()
            })
            .collect();
        let v = numbers(40, wanted.len());
        let gap = relative(&some.product(operator, &v).unwrap(), &times(&block, &v));
        assert!(gap < 1e-8, "{operator:?} {gap:e}");
    }
}

#[test]
fn products_are_symmetric_linear_and_independent_of_the_chunks() {
    let whole = curvature(&Subspace::all());
    let parts = Curvature::new(
        Perceptron::new(),
        objective().with_chunk(2),
        &Subspace::all(),
    )
    .unwrap();
    let (u, v) = (
        numbers(50, whole.dimension()),
        numbers(51, whole.dimension()),
    );
    for operator in BOTH {
        let product = |v: &[f64]| whole.product(operator, v).unwrap();
        let (left, right) = (dot(&u, &product(&v)), dot(&v, &product(&u)));
        assert!(
            (left - right).abs() < 1e-8 * left.abs(),
            "{operator:?}: {left} {right}"
        );
        let chunked = parts.product(operator, &v).unwrap();
        assert!(relative(&chunked, &product(&v)) < 1e-9, "{operator:?}");
        let zero = product(&vec![0.0; whole.dimension()]);
        assert!(zero.iter().all(|value| *value == 0.0));
    }
    assert!(dot(&v, &whole.gauss_newton_vector(&v).unwrap()) > 0.0);
}

/// The same cross-entropy written with Burn's operations.
#[test]
fn a_plain_loss_has_the_same_hessian() {
    let x = inputs();
    let labels = LABELS.map(|label| label as i64);
    let labels = Tensor::<1, Int>::from_data(labels, &double().autodiff());
    let loss = |model: &Perceptron| {
        let logs = log_softmax(model.forward(x.clone()), 1);
        -logs.gather(1, labels.clone().unsqueeze_dim(1)).mean()
    };
    let plain = Curvature::new(Perceptron::new(), Objective::loss(loss), &Subspace::all()).unwrap();
    let v = numbers(60, plain.dimension());
    let expected = curvature(&Subspace::all()).hessian_vector(&v).unwrap();
    assert!(relative(&plain.hessian_vector(&v).unwrap(), &expected) < 1e-9);
    assert_eq!(plain.gauss_newton_vector(&v), Err(CurvatureError::NoLogits));
}

#[test]
fn mistakes_are_errors() {
    let new = |model, objective, subspace: &Subspace| {
        Curvature::new(model, objective, subspace).unwrap_err()
    };
    let error = new(Perceptron::new(), objective(), &Subspace::named(["hiden"])).to_string();
    assert!(
        error.contains("hiden") && error.contains("hidden.weight"),
        "{error}"
    );

    let error = new(Perceptron::new(), objective(), &Subspace::attention());
    assert!(matches!(error, CurvatureError::UnknownParameter { .. }));

    let error = new(Perceptron::new().freeze(), objective(), &Subspace::all());
    assert!(matches!(error, CurvatureError::EmptySubspace { .. }));

    let error = new(Perceptron::new().valid(), objective(), &Subspace::all());
    assert!(matches!(error, CurvatureError::NoGradients { .. }));

    let x = inputs();
    let forward = |model: &Perceptron, examples: std::ops::Range<usize>| {
        model.forward(x.clone().slice(examples))
    };
    let error = new(
        Perceptron::new(),
        Objective::cross_entropy([0, 3, 1], forward),
        &Subspace::all(),
    );
    assert_eq!(
        error,
        CurvatureError::Label {
            example: 1,
            label: 3,
            classes: 3
        }
    );
    let error = new(
        Perceptron::new(),
        Objective::cross_entropy([], forward),
        &Subspace::all(),
    );
    assert!(matches!(error, CurvatureError::Shape { .. }));
    let whole = |model: &Perceptron, _| model.forward(x.clone());
    let error = new(
        Perceptron::new(),
        Objective::cross_entropy([0, 1], whole),
        &Subspace::all(),
    );
    assert!(matches!(error, CurvatureError::Shape { .. }));

    let mut broken = Perceptron::new();
    broken.output = linear(3, HIDDEN, CLASSES, &double().autodiff());
    broken.output.bias = broken
        .output
        .bias
        .map(|bias| bias.map(|bias| bias * f64::NAN));
    let error = new(broken, objective(), &Subspace::named(["hidden"]));
    assert!(matches!(error, CurvatureError::NotFinite { .. }), "{error}");

    let curvature = curvature(&Subspace::all());
    let error = curvature.hessian_vector(&[1.0]).unwrap_err();
    assert!(error.to_string().contains("31"), "{error}");
    let error = curvature.gauss_newton_vector(&[f64::NAN; 31]).unwrap_err();
    assert!(matches!(error, CurvatureError::NotFinite { .. }));
}

/// A loss that is finite with a gradient that is not: `sqrt(0)`.
#[test]
fn gradients_that_are_not_finite_are_errors() {
    let loss = |model: &Perceptron| {
        let bias = model.output.bias.as_ref().unwrap().val();
        (bias.clone() - bias.detach()).powf_scalar(0.5).sum()
    };
    let curvature =
        Curvature::new(Perceptron::new(), Objective::loss(loss), &Subspace::all()).unwrap();
    let error = curvature.gradient().unwrap_err();
    assert!(error.to_string().contains("output.bias"), "{error}");
    let v = numbers(1, curvature.dimension());
    assert!(curvature.hessian_vector(&v).is_err());
}

#[test]
fn a_random_objective_is_an_error() {
    let calls = std::cell::Cell::new(0.0);
    let loss = |model: &Perceptron| {
        calls.set(calls.get() + 1.0);
        model.hidden.weight.val().sum() * calls.get()
    };
    let error =
        Curvature::new(Perceptron::new(), Objective::loss(loss), &Subspace::all()).unwrap_err();
    assert!(matches!(error, CurvatureError::Random { .. }), "{error}");
}
