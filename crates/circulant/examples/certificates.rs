//! Radii inside which a decision cannot change: `cargo run --example certificates`.
//!
//! The norm of a circulant layer is its largest eigenvalue, so bounds are cheap and tight. They hold for the f32 forward pass as it is
//! computed: its rounding errors are subtracted.

use burn::tensor::{Tensor, TensorData};
use circulant::geometry::{CertificateConfig, Lipschitz, NormControl, SingularValues, Target};
use circulant::models::{HiddenKind, ImageClassifierConfig};
use circulant::noise::{NoiseKey, standard_normal};
use circulant::task::Classifier;

const FEATURES: usize = 32;
const INPUTS: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = circulant::cpu();
    let mut model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, FEATURES])
        .with_classes(3)
        .init(&device);
    println!(
        "Lipschitz constant at most {}",
        model.network_bound()?.upper()
    );
    // At most 1-Lipschitz, layer by layer; in training, `Svi::with_projection` does it after every step.
    model.clip_norm(1.0)?;
    let bound = model.network_bound()?;
    for layer in bound.layers() {
        println!("{}: norm at most {}", layer.name(), layer.norm().upper());
    }
    assert!(model.output.singular_values()?[0] <= 1.0 + 1e-6);
    assert!(bound.upper().get() <= 1.0 + 1e-12);

    let mut values = vec![0.0_f64; INPUTS * FEATURES];
    standard_normal(NoiseKey { seed: 5, stream: 0 }, &mut values);
    let inputs = Tensor::<2>::from_data(TensorData::new(values, [INPUTS, FEATURES]), &device);
    let certificates =
        CertificateConfig::new().certify(&model, inputs.clone(), Target::Predicted)?;
    println!(
        "median radius {:.4}, {:.0} % of inputs certified at 0.01",
        certificates.radii().sqrt_two.median,
        100.0 * certificates.certified_at(0.01).share.sqrt_two
    );

    // Moved by almost the radius, in any direction, no input changes its class.
    let classes = |inputs| model.logits(inputs).argmax(1).into_data();
    let before = classes(inputs.clone());
    let radii = certificates.inputs.iter().map(|input| input.best().get());
    let radii: Vec<f64> = radii.collect();
    assert!(radii.iter().any(|&radius| radius > 0.0));
    let radii = Tensor::<2>::from_data(TensorData::new(radii, [INPUTS, 1]), &device);
    for stream in 1..=20 {
        let mut direction = vec![0.0_f64; INPUTS * FEATURES];
        standard_normal(NoiseKey { seed: 5, stream }, &mut direction);
        let data = TensorData::new(direction, [INPUTS, FEATURES]);
        let direction = Tensor::<2>::from_data(data, &device);
        let length = direction.clone().powi_scalar(2).sum_dim(1).sqrt();
        let step = direction / length * radii.clone() * 0.999;
        assert_eq!(classes(inputs.clone() + step), before);
    }
    println!("20 attacks per input inside its radius changed no decision");
    Ok(())
}
