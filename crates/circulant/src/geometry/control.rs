//! Norm control: the nearest layer whose norm is at most a limit.
//!
//! | layer | what is done |
//! | --- | --- |
//! | [`SpectralCirculant1d`], [`Circulant1d`] | every bin with `abs(h_k) > limit` is shortened to `limit`, phases stay |
//! | [`BlockCirculant1d`], [`SpectralBccb2d`], [`Bccb2d`] | every singular value of every `K(u, v)` above `limit` is lowered to `limit` |
//! | [`DiagonalCirculant1d`](crate::nn::DiagonalCirculant1d) | all circulant matrices are scaled, so that the bound of the norm is `limit` |
//! | [`OrthogonalCirculant1d`], [`OrthogonalBlock1d`], [`OrthogonalBccb2d`], [`OrthogonalConv2d`] | nothing: their norm is one, and a limit below it is an error |
//! | `Linear` | the whole matrix is scaled to the norm `limit`, if it is above |
//! | `Conv2d` ([`clip_convolution`]) | the same, with the upper bound of its norm |
//!
//! The first two are the projection onto the layers of norm at most `limit`, in the Frobenius norm of the operator. A layer within the limit
//! keeps its bits.
//!
//! Parameters are f32: rounding them after the clip could exceed the limit by a unit in the last place. So the clip aims a little
//! lower, and is repeated a little lower still until the certified upper bound is at most the limit.
//!
//! With [`Svi::with_projection`](crate::bayes::Svi::with_projection) this trains 1-Lipschitz networks. In a Bayesian network what is clipped are the posterior
//! means; samples may exceed the limit. A point estimate is within it after every step.

use burn::module::Param;
use burn::nn::Linear;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use circulant_kernels::{clip_norm_1d, clip_norm_2d};

use super::{GeometryError, OperatorNorm, SameConvolution};
use crate::models::{HiddenLayer, ImageClassifier};
use crate::nn::{
    Bccb2d, BlockCirculant1d, Circulant1d, LayerValues, OrthogonalBccb2d, OrthogonalBlock1d,
    OrthogonalCirculant1d, OrthogonalConv2d, SpectralBccb2d, SpectralCirculant1d, to_host,
    with_values,
};
use crate::operator::{Layout, Operator};

/// What can be brought below a norm.
pub trait NormControl {
    /// Makes the certified norm of every linear layer at most `limit`, which is positive.
    ///
    /// ```
    /// use circulant::geometry::{NormControl, OperatorNorm};
    /// use circulant::nn::SpectralCirculant1dConfig;
    ///
    /// let mut layer = SpectralCirculant1dConfig::new(64).init(&circulant::cpu());
    /// layer.clip_norm(0.5)?;
    /// assert!(layer.norm_bounds()?.upper().get() <= 0.5);
    /// # Ok::<(), circulant::geometry::GeometryError>(())
    /// ```
    fn clip_norm(&mut self, limit: f64) -> Result<(), GeometryError>;
}

/// How far below the limit the first attempt aims: twice the rounding of f32.
const FIRST_SHRINK: f64 = 1.0 / 8_388_608.0;

/// Lowers the aim until the certified norm is within the limit. `attempt` sets the parameters for an aim and returns the certified
/// norm; with the aim 0 it sets zeros.
pub(super) fn within_limit(
    limit: f64,
    norm: impl FnOnce() -> Result<f64, GeometryError>,
    mut attempt: impl FnMut(f64) -> Result<f64, GeometryError>,
) -> Result<(), GeometryError> {
    if !(limit > 0.0 && limit.is_finite()) {
        return Err(GeometryError::Setting {
            what: "the limit of a norm",
            expected: "positive and finite",
            got: limit,
        });
    }
    if norm()? <= limit {
        return Ok(());
    }
    let mut shrink = FIRST_SHRINK;
    loop {
        let aim = if shrink < 1.0 {
            limit * (1.0 - shrink)
        } else {
            0.0
        };
        if attempt(aim)? <= limit || aim == 0.0 {
            return Ok(());
        }
        shrink *= 4.0;
    }
}

/// The values of a spectrum with all singular values at most `aim`.
fn clipped(layout: &Layout, coordinates: &[f64], aim: f64) -> Result<Vec<f64>, GeometryError> {
    if aim == 0.0 {
        return Ok(vec![0.0; coordinates.len()]);
    }
    let mut clipped = coordinates.to_vec();
    match layout {
        Layout::Signal(half) => clip_norm_1d(half, &mut clipped, aim)?,
        Layout::Image {
            plane,
            channels_in,
            channels_out,
        } => clip_norm_2d(plane, *channels_in, *channels_out, &mut clipped, aim)?,
    };
    Ok(clipped)
}

pub(super) fn upper(layer: &impl OperatorNorm) -> Result<f64, GeometryError> {
    Ok(layer.norm_bounds()?.upper().get())
}

macro_rules! spectral {
    ($($layer:ty),*) => {$(
        impl NormControl for $layer {
            fn clip_norm(&mut self, limit: f64) -> Result<(), GeometryError> {
                let original = self.coordinates.clone();
                let coordinates = to_host(original.val());
                let layout = self.layer_map().operator().layout().clone();
                let norm = upper(self);
                within_limit(limit, || norm, |aim| {
                    self.coordinates = with_values(&original, clipped(&layout, &coordinates, aim)?);
                    upper(self)
                })
            }
        }
    )*};
}

spectral!(SpectralCirculant1d, BlockCirculant1d, SpectralBccb2d);

/// The filter whose spectrum is that of `filter`, clipped.
fn clipped_filter<const D: usize>(
    filter: &Param<Tensor<D>>,
    operator: &Operator,
    aim: f64,
) -> Result<Param<Tensor<D>>, GeometryError> {
    let mut values = to_host(filter.val());
    let transform = &operator.plans::<f64>().filters;
    let mut coordinates = vec![0.0; operator.coordinates()];
    transform.analyse(&values, &mut coordinates)?;
    let coordinates = clipped(operator.layout(), &coordinates, aim)?;
    transform.synthesise(&coordinates, &mut values)?;
    Ok(with_values(filter, values))
}

macro_rules! spatial {
    ($($layer:ty),*) => {$(
        impl NormControl for $layer {
            fn clip_norm(&mut self, limit: f64) -> Result<(), GeometryError> {
                let original = self.filter.clone();
                let operator = self.layer_map().operator().clone();
                let norm = upper(self);
                within_limit(limit, || norm, |aim| {
                    self.filter = clipped_filter(&original, &operator, aim)?;
                    upper(self)
                })
            }
        }
    )*};
}

spatial!(Circulant1d, Bccb2d);

macro_rules! orthogonal {
    ($($layer:ty),*) => {$(
        impl NormControl for $layer {
            fn clip_norm(&mut self, limit: f64) -> Result<(), GeometryError> {
                let norm = upper(self)?;
                if norm <= limit {
                    return Ok(());
                }
                Err(GeometryError::Setting {
                    what: "the limit of the norm of an orthogonal layer, which is 1 whatever its parameters are",
                    expected: "1.001 or more, as f32 rounds it",
                    got: limit,
                })
            }
        }
    )*};
}

orthogonal!(
    OrthogonalCirculant1d,
    OrthogonalBlock1d,
    OrthogonalBccb2d,
    OrthogonalConv2d
);

/// The parameter times a number.
pub(super) fn scaled<const D: usize>(param: &Param<Tensor<D>>, factor: f64) -> Param<Tensor<D>> {
    let values = to_host(param.val()).into_iter().map(|value| value * factor);
    with_values(param, values.collect())
}

impl NormControl for Linear {
    fn clip_norm(&mut self, limit: f64) -> Result<(), GeometryError> {
        let original = self.weight.clone();
        let norm = upper(self)?;
        within_limit(
            limit,
            || Ok(norm),
            |aim| {
                self.weight = scaled(&original, aim / norm);
                upper(self)
            },
        )
    }
}

/// [`NormControl::clip_norm`] for a convolution that keeps the size `[H, W]` of its images.
pub fn clip_convolution(
    layer: &mut Conv2d,
    grid: [usize; 2],
    limit: f64,
) -> Result<(), GeometryError> {
    let original = layer.weight.clone();
    let norm = upper(&SameConvolution::new(layer, grid))?;
    within_limit(
        limit,
        || Ok(norm),
        |aim| {
            layer.weight = scaled(&original, aim / norm);
            upper(&SameConvolution::new(layer, grid))
        },
    )
}

/// Hidden layers and read-out, each to the limit.
impl NormControl for ImageClassifier {
    fn clip_norm(&mut self, limit: f64) -> Result<(), GeometryError> {
        let grid = self.grid();
        for layer in self.body.iter_mut().chain([&mut self.hidden]) {
            match layer {
                HiddenLayer::SpectralCirculant(layer) => layer.clip_norm(limit),
                HiddenLayer::BlockCirculant(layer) => layer.clip_norm(limit),
                HiddenLayer::SpectralBccb(layer) => layer.clip_norm(limit),
                HiddenLayer::SpatialCirculant(layer) => layer.clip_norm(limit),
                HiddenLayer::SpatialBccb(layer) => layer.clip_norm(limit),
                HiddenLayer::Convolution(layer) => clip_convolution(layer, grid, limit),
                HiddenLayer::Dense(layer) => layer.clip_norm(limit),
            }?;
        }
        self.output.clip_norm(limit)
    }
}
