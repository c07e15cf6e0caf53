//! The curvature of a small vision transformer: laws that hold without knowing the matrix.

use crate::common::{double, numbers, random};
use burn::tensor::Tensor;
use circulant::curvature::{
    Curvature, CurvatureMatrix, EigenvalueConfig, Method, Objective, Stencil, Subspace,
};
use circulant::models::{ProjectionKind, VisionTransformer, VisionTransformerConfig};

const LABELS: [usize; 6] = [0, 1, 2, 2, 1, 0];

const BOTH: [CurvatureMatrix; 2] = [CurvatureMatrix::Hessian, CurvatureMatrix::GaussNewton];

const KINDS: [ProjectionKind; 2] = [ProjectionKind::Dense, ProjectionKind::Spectral];

/// Laws of exact matrices, broken by the stencil only, which is far better.
const TOLERANCE: f64 = 1e-7;

/// With dropout, which the curvature must switch off.
fn curvature<'a>(kind: ProjectionKind, subspace: &Subspace) -> Curvature<'a, VisionTransformer> {
    let device = double().autodiff();
    let model = VisionTransformerConfig::new(8, 4, 3, kind)
        .with_d(8)
        .with_depth(2)
        .with_heads(2)
        .with_dropout(0.3)
        .init(&device);
    let images: Tensor<4> = random(3, [LABELS.len(), 3, 8, 8], &device);
    let objective = Objective::classifier(images, LABELS);
    Curvature::new(model, objective.with_chunk(4), subspace).expect("a network with gradients")
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn relative(got: &[f64], expected: &[f64]) -> f64 {
    let difference: Vec<f64> = got.iter().zip(expected).map(|(a, b)| a - b).collect();
    (dot(&difference, &difference) / dot(expected, expected)).sqrt()
}

#[test]
fn stencils_agree_and_products_are_symmetric() {
    for (kind, operator) in KINDS.into_iter().flat_map(|kind| BOTH.map(|o| (kind, o))) {
        let second = curvature(kind, &Subspace::all());
        let fourth = curvature(kind, &Subspace::all()).with_stencil(Stencil::Fourth);
        let (u, v) = (
            numbers(1, second.dimension()),
            numbers(2, second.dimension()),
        );
        let product = |v: &[f64]| second.product(operator, v).unwrap();
        let gap = relative(&product(&v), &fourth.product(operator, &v).unwrap());
        assert!(gap < TOLERANCE, "{kind:?} {operator:?}: {gap:e}");
        let (left, right) = (dot(&u, &product(&v)), dot(&v, &product(&u)));
        let size = dot(&product(&v), &product(&v)).sqrt() * dot(&u, &u).sqrt();
        assert!(
            (left - right).abs() < TOLERANCE * size,
            "{kind:?} {operator:?}"
        );
    }
}

/// The attention block of the whole matrix: zeros outside, rows inside.
#[test]
fn attention_is_a_block_of_the_whole() {
    for (kind, operator) in KINDS.into_iter().flat_map(|kind| BOTH.map(|o| (kind, o))) {
        let all = curvature(kind, &Subspace::all());
        let attention = curvature(kind, &Subspace::attention());
        let inside: Vec<usize> = all
            .paths()
            .filter(|(path, _)| path.contains(".attention."))
            .flat_map(|(_, range)| range)
            .collect();
        assert_eq!(inside.len(), attention.dimension());
        let v = numbers(5, inside.len());
        let mut whole = vec![0.0; all.dimension()];
        inside.iter().zip(&v).for_each(|(&i, v)| whole[i] = *v);
        let product = all.product(operator, &whole).unwrap();
        let expected: Vec<f64> = inside.iter().map(|&i| product[i]).collect();
        let gap = relative(&attention.product(operator, &v).unwrap(), &expected);
        assert!(gap < TOLERANCE, "{kind:?} {operator:?}: {gap:e}");
    }
}

/// Lanczos and power iteration from different starts find the same number, and the block's is not larger.
#[test]
fn methods_agree_and_a_block_is_not_sharper_than_the_whole() {
    for operator in BOTH {
        let value = |subspace: &Subspace, method, seed| {
            let config = EigenvalueConfig {
                method,
                tolerance: 1e-3,
                max_products: 300,
                seed,
            };
            let found = curvature(ProjectionKind::Dense, subspace);
            let found = found.dominant_eigenvalue(operator, &config).unwrap();
            assert!(
                found.converged,
                "{operator:?} {method:?} {}",
                found.residual
            );
            found.value
        };
        let lanczos = value(&Subspace::all(), Method::Lanczos { basis: 24 }, 1);
        let power = value(&Subspace::all(), Method::Power, 2);
        // The error is of second order in the residual, but the gap is not known: the first order is safe.
        assert!(
            (lanczos - power).abs() < 3e-3 * lanczos.abs(),
            "{lanczos} {power}"
        );
        let attention = value(&Subspace::attention(), Method::Lanczos { basis: 24 }, 1);
        assert!(
            attention.abs() <= lanczos.abs() * 1.001,
            "{attention} {lanczos}"
        );
    }
}
