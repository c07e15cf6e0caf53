//! Stand-ins until the kernels have enclosures of their own.
#![allow(missing_docs)]

use circulant_kernels::{FilterTransform, HalfPlane, HalfSpectrum, KernelError};

#[derive(Debug, Clone, Copy)]
pub struct NormEnclosure {
    pub lower: f64,
    pub upper: f64,
}

fn around(value: f64) -> NormEnclosure {
    NormEnclosure {
        lower: value * (1.0 - 1e-12),
        upper: value * (1.0 + 1e-12),
    }
}

pub fn operator_norm_1d(
    layout: &HalfSpectrum,
    coordinates: &[f64],
) -> Result<NormEnclosure, KernelError> {
    circulant_kernels::operator_norm_1d(layout, coordinates).map(around)
}

pub fn operator_norm_2d(
    layout: &HalfPlane,
    channels_in: usize,
    channels_out: usize,
    coordinates: &[f64],
) -> Result<NormEnclosure, KernelError> {
    circulant_kernels::operator_norm_2d(layout, channels_in, channels_out, coordinates).map(around)
}

pub fn matrix_norm(
    rows: usize,
    columns: usize,
    values: &[f64],
) -> Result<NormEnclosure, KernelError> {
    operator_norm_2d(&HalfPlane::new(1, 1)?, rows, columns, values)
}

pub fn convolution_norm_bound(
    weights: &[f64],
    channels_in: usize,
    channels_out: usize,
    [rows, columns]: [usize; 2],
    [height, width]: [usize; 2],
) -> Result<f64, KernelError> {
    let (h, w) = (height + rows - 1, width + columns - 1);
    let plane = HalfPlane::new(h, w)?;
    let mut filters = vec![0.0; channels_in * channels_out * h * w];
    for (index, value) in weights.iter().enumerate() {
        let (pair, tap) = (index / (rows * columns), index % (rows * columns));
        filters[(pair * h + tap / columns) * w + tap % columns] = *value;
    }
    let mut coordinates = vec![0.0; filters.len()];
    FilterTransform::<f64>::new_2d(&plane, channels_in, channels_out)?
        .analyse(&filters, &mut coordinates)?;
    Ok(operator_norm_2d(&plane, channels_in, channels_out, &coordinates)?.upper * (1.0 + 1e-9))
}

pub fn clip_norm_1d(
    layout: &HalfSpectrum,
    coordinates: &mut [f64],
    limit: f64,
) -> Result<(), KernelError> {
    let norm = operator_norm_1d(layout, coordinates)?.upper;
    if norm > limit {
        coordinates.iter_mut().for_each(|a| *a *= limit / norm);
    }
    Ok(())
}

pub fn clip_norm_2d(
    layout: &HalfPlane,
    channels_in: usize,
    channels_out: usize,
    coordinates: &mut [f64],
    limit: f64,
) -> Result<(), KernelError> {
    let norm = operator_norm_2d(layout, channels_in, channels_out, coordinates)?.upper;
    if norm > limit {
        coordinates.iter_mut().for_each(|a| *a *= limit / norm);
    }
    Ok(())
}
