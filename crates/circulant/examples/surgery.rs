//! From a dense model to a circulant one, and back: `cargo run --example surgery`.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Tensor, TensorData};
use circulant::nn::{BiasKind, SpectralCirculant1d, SpectralCirculant1dConfig};
use circulant::surgery::{linear_report, nearest_circulant, to_dense};

const WIDTH: usize = 24;

#[derive(Module, Debug)]
struct Dense {
    hidden: Linear,
    read: Linear,
}

#[derive(Module, Debug)]
struct Circulant {
    hidden: SpectralCirculant1d,
    read: Linear,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = circulant::cpu();
    device.seed(1);
    // A dense layer that is almost circulant, as those of a network that has learned something about shifts may be.
    let learned = SpectralCirculant1dConfig::new(WIDTH)
        .with_bias(BiasKind::Vector)
        .init(&device);
    let mut hidden = to_dense(&learned);
    hidden.weight = hidden.weight.map(|weight| {
        let noise = LinearConfig::new(WIDTH, WIDTH).init(&device).weight.val();
        weight + noise * 0.1
    });
    let dense = Dense {
        hidden,
        read: LinearConfig::new(WIDTH, 3).init(&device),
    };

    // Which layers are near a circulant one?
    for layer in linear_report(&dense)? {
        println!(
            "{} {:?}: {:.3} of the matrix is not circulant",
            layer.path, layer.shape, layer.relative_error
        );
    }
    let nearest = nearest_circulant(&dense.hidden, BiasKind::Vector)?;
    println!(
        "hidden replaced, relative error {:.3}",
        nearest.relative_error
    );
    assert!(nearest.relative_error < 0.2);
    let circulant = Circulant {
        hidden: nearest.layer,
        read: dense.read.clone(),
    };
    println!(
        "{} parameters in place of {}",
        circulant.num_params(),
        dense.num_params()
    );

    // And back: a dense layer with the same map.
    let back = to_dense(&circulant.hidden);
    let values: Vec<f32> = (0..4 * WIDTH).map(|i| (i as f32 * 0.7).sin()).collect();
    let x = Tensor::<2>::from_data(TensorData::new(values, [4, WIDTH]), &device);
    let [structured, plain, before] = [
        circulant.hidden.forward(x.clone()),
        back.forward(x.clone()),
        dense.hidden.forward(x),
    ];
    let distance =
        |a: &Tensor<2>, b: &Tensor<2>| -> f32 { (a.clone() - b.clone()).abs().max().into_scalar() };
    println!(
        "outputs differ by {:.1e} from those of the dense form, by {:.2} from those before",
        distance(&structured, &plain),
        distance(&structured, &before)
    );
    assert!(distance(&structured, &plain) < 1e-4);
    assert!(circulant.read.forward(structured).dims() == [4, 3]);
    Ok(())
}
