//! Layers and operations: outputs, and the gradients of inputs and parameters.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use circulant::functional::{cross_entropy, max_min, tanh};
use circulant::models::{ProjectionKind, VisionTransformerConfig};
use circulant::nn::{
    Bccb2dConfig, BlockCirculant1dConfig, Circulant1dConfig, DiagonalCirculant1dConfig,
    OrthogonalBccb2dConfig, OrthogonalBlock1dConfig, SpectralBccb2dConfig,
    SpectralCirculant1dConfig,
};

use crate::common::random;
use crate::{Check, compare};

/// What the composed operators promise in f32.
const LAYER: f64 = 1e-5;
const BATCH: usize = 5;

pub fn checks() -> Vec<Check> {
    let check = |name, deviation| Check {
        name,
        tolerance: LAYER,
        deviation,
    };
    vec![
        check("signals: `SpectralCirculant1d`, `Circulant1d`", signals),
        check("blocks: `BlockCirculant1d`, `DiagonalCirculant1d`", blocks),
        check("images: `SpectralBccb2d`, `Bccb2d`", images),
        check("orthogonal layers (isometries on the host)", orthogonal),
        check("tanh, MaxMin, cross-entropy", operations),
        check("vision transformer: attention, norm, GELU", transformer),
    ]
}

/// Collects the gradients of all parameters.
struct Collect<'a> {
    from: &'a Gradients,
    into: Vec<Vec<f64>>,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param
            .val()
            .grad(self.from)
            .expect("every parameter is used");
        self.into.push(host(gradient));
    }
}

pub fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// The output, and all gradients of a weighted sum of it.
fn numbers<M: Module, const X: usize, const Y: usize>(
    module: M,
    shape: [usize; X],
    forward: impl Fn(&M, Tensor<X>) -> Tensor<Y>,
    device: &Device,
) -> Vec<Vec<f64>> {
    let device = device.clone().autodiff();
    let module = module.fork(&device);
    let x = random::<X>(1, shape, &device).require_grad();
    let y = forward(&module, x.clone());
    let weights = random::<Y>(2, y.dims(), &device);
    let gradients = (y.clone() * weights).sum().backward();
    let of_x = x.grad(&gradients).expect("the input is used");
    let mut collect = Collect {
        from: &gradients,
        into: vec![host(y), host(of_x)],
    };
    module.visit(&mut collect);
    collect.into
}

/// The largest deviation of several modules.
macro_rules! worst {
    ($device:expr, $($module:expr, $shape:expr, $forward:expr);+ $(;)?) => {
        [$({
            let module = $module;
            compare($device, |device| numbers(module.clone(), $shape, $forward, device))
        }),+]
        .into_iter()
        .fold(0.0, f64::max)
    };
}

fn signals(device: &Device) -> f64 {
    let cpu = &circulant::cpu().autodiff();
    let mut worst = 0.0_f64;
    // A matrix, two stages, and the chirp.
    for d in [7, 28, 784, 509] {
        worst = worst.max(worst!(device,
            SpectralCirculant1dConfig::new(d).with_seed(Some(5)).init(cpu), [BATCH, d], |layer, x: Tensor<2>| layer.forward(x);
            Circulant1dConfig::new(d).with_seed(Some(5)).init(cpu), [BATCH, d], |layer, x: Tensor<2>| tanh(layer.forward(x));
        ));
    }
    worst
}

fn blocks(device: &Device) -> f64 {
    let cpu = &circulant::cpu().autodiff();
    worst!(device,
        BlockCirculant1dConfig::new(24, 40, 8).with_seed(Some(5)).init(cpu), [BATCH, 24], |layer, x: Tensor<2>| layer.forward(x);
        BlockCirculant1dConfig::new(30, 12, 7).with_seed(Some(5)).init(cpu), [BATCH, 30], |layer, x: Tensor<2>| layer.forward(x);
        DiagonalCirculant1dConfig::new(20).with_seed(Some(5)).init(cpu), [BATCH, 20], |layer, x: Tensor<2>| layer.forward(x);
    )
}

fn images(device: &Device) -> f64 {
    let cpu = &circulant::cpu().autodiff();
    worst!(device,
        SpectralBccb2dConfig::new([3, 4], [8, 9]).with_seed(Some(5)).init(cpu), [BATCH, 3, 8, 9], |layer, x: Tensor<4>| layer.forward(x);
        Bccb2dConfig::new([1, 2], [7, 5]).with_seed(Some(5)).init(cpu), [BATCH, 1, 7, 5], |layer, x: Tensor<4>| layer.forward(x);
    )
}

fn orthogonal(device: &Device) -> f64 {
    let cpu = &circulant::cpu().autodiff();
    worst!(device,
        OrthogonalBlock1dConfig::new(16, 16, 4).with_seed(Some(5)).init(cpu), [BATCH, 16], |layer, x: Tensor<2>| layer.forward(x);
        OrthogonalBccb2dConfig::new([4, 4], [4, 6]).with_seed(Some(5)).init(cpu), [BATCH, 4, 4, 6], |layer, x: Tensor<4>| layer.forward(x);
    )
}

/// No parameters.
#[derive(Module, Debug)]
struct Nothing;

fn operations(device: &Device) -> f64 {
    worst!(device,
        Nothing, [BATCH, 12], |_, x: Tensor<2>| tanh(x);
        Nothing, [BATCH, 12], |_, x: Tensor<2>| max_min(x, 1);
        Nothing, [3, 4], |_, x: Tensor<2>| cross_entropy(x, [2, 0, 3]);
    )
}

fn transformer(device: &Device) -> f64 {
    let cpu = &circulant::cpu().autodiff();
    let model = |kind| {
        let config = VisionTransformerConfig::new(6, 3, 3, kind);
        config.with_d(12).with_depth(1).with_heads(3).init(cpu)
    };
    worst!(device,
        model(ProjectionKind::Spectral), [2, 3, 6, 6], |model, x: Tensor<4>| model.forward(x);
        model(ProjectionKind::Dense), [2, 3, 6, 6], |model, x: Tensor<4>| model.forward(x);
    )
}
