//! The nearest layer of block-circulant matrices with circulant blocks, for dense layers whose features are channels of images.
//!
//! `w[o, c, y, x]` is the mean of the entries of `W` from channel `c` to channel `o` that lie `(y, x)` apart on the torus. With a
//! grid of `1 x n` the blocks are plain circulant matrices.

use burn::nn::Linear;

use super::SurgeryError;
use super::circulant::Nearest;
use super::projection::{finite, like, relative_distance};
use crate::nn::{LayerValues, SpectralBccb2d, SpectralBccb2dConfig, to_host};

/// The BCCB layer nearest to `linear`, whose inputs are `[C_in, H, W]` and whose outputs are `[C_out, H, W]`, flattened. The bias
/// per output channel is the mean over its pixels.
pub fn nearest_bccb(
    linear: &Linear,
    channels: [usize; 2],
    grid: [usize; 2],
) -> Result<Nearest<SpectralBccb2d>, SurgeryError> {
    let weight = linear.weight.val();
    let ([channels_in, channels_out], [height, width]) = (channels, grid);
    let pixels = height * width;
    let (expected, got) = (channels.map(|channels| channels * pixels), weight.dims());
    if expected != got {
        return Err(SurgeryError::Shape { expected, got });
    }
    let config = SpectralBccb2dConfig::new(channels, grid).with_bias(linear.bias.is_some());
    let mut layer = config.try_init(&weight.device())?;
    let values = finite(to_host(weight.clone()))?;
    let outputs = got[1];
    let tap = |at: usize| {
        let (row, column) = (at / outputs, at % outputs);
        let (c, y, x) = (row / pixels, row % pixels / width, row % width);
        let (o, y_out, x_out) = (column / pixels, column % pixels / width, column % width);
        let (dy, dx) = ((y_out + height - y) % height, (x_out + width - x) % width);
        ((o * channels_in + c) * height + dy) * width + dx
    };
    let mut filter = vec![0.0; channels_out * channels_in * pixels];
    for (at, value) in values.iter().enumerate() {
        filter[tap(at)] += value / pixels as f64;
    }
    let mut coordinates = vec![0.0; filter.len()];
    let transform = &layer.layer_map().operator().plans::<f64>().filters;
    transform
        .analyse(&filter, &mut coordinates)
        .expect("without a mask there are as many coordinates as numbers in the filters");
    layer.coordinates = like(&weight, coordinates, [pixels, channels_in, channels_out]);
    let relative_error = relative_distance(&values, (0..values.len()).map(|at| filter[tap(at)]));
    let mut bias_error = 0.0;
    if let Some(dense) = &linear.bias {
        let dense = dense.val();
        let values = finite(to_host(dense.clone()))?;
        let mean = |pixel: &[f64]| pixel.iter().sum::<f64>() / pixels as f64;
        let kept: Vec<f64> = values.chunks_exact(pixels).map(mean).collect();
        bias_error = relative_distance(&values, (0..outputs).map(|t| kept[t / pixels]));
        layer.bias = Some(like(&dense, kept, [channels_out]));
    }
    Ok(Nearest {
        layer,
        relative_error,
        bias_error,
    })
}
