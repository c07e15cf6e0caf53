//! The matrices of the transform and the table of T, made once per layout, device and number type.

use std::any::TypeId;
use std::f64::consts::TAU;
use std::sync::Arc;

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata, get_or_init_device_settings};
use burn::tensor::{Shape, TensorData};
use circulant_kernels::Bin;

use super::ComplexPair;
use crate::operator::{Layout, Operator};

/// The transform matrices and the table of T on one device.
pub(super) struct Constants<B: Backend> {
    /// `[W, 2 columns]`: cosines, then minus sines.
    pub(super) rows: FloatTensor<B>,
    /// `[columns, W]` each: cosines and minus sines times the multiplicity.
    pub(super) rows_back: ComplexPair<B>,
    /// `[1, H, H]` each: cosines and sines; absent for one row.
    pub(super) columns: Option<ComplexPair<B>>,
    /// For every bin the coordinate of its real and imaginary part.
    pub(super) index: [IntTensor<B>; 2],
    /// `[bins, 1, 1]` each: 0, 1 or -1.
    pub(super) sign: [FloatTensor<B>; 2],
    /// For every coordinate its place in (real parts, imaginary parts) of the bins.
    pub(super) place: IntTensor<B>,
    /// `[coordinates, 1, 1]`: 1 for a real bin, 2 for a part of a complex one.
    pub(super) multiplicity: FloatTensor<B>,
}

impl<B: Backend> Constants<B> {
    pub(super) fn of(operator: &Operator, like: &FloatTensor<B>) -> Arc<Self> {
        let (device, dtype) = (like.device(), like.dtype());
        let key = (TypeId::of::<B>(), format!("{device:?}"), dtype);
        operator.constant(key, || {
            let float = |values: Vec<f64>, shape: &[usize]| {
                B::float_from_data(
                    TensorData::new(values, Shape::from(shape.to_vec())).convert_dtype(dtype),
                    &device,
                )
            };
            Self::new(operator.layout(), float, &device)
        })
    }

    fn new(
        layout: &Layout,
        float: impl Fn(Vec<f64>, &[usize]) -> FloatTensor<B>,
        device: &Device<B>,
    ) -> Self {
        let (height, width) = layout.grid();
        let columns = layout.columns();
        let scale = (width as f64).sqrt().recip();
        // Products are reduced exactly before the division, so long lengths lose no digits.
        let angle = |a: usize, b: usize, n: usize| TAU * ((a * b) % n) as f64 / n as f64;
        let multiplicity = |v: usize| {
            if v == 0 || 2 * v == width {
                scale
            } else {
                2.0 * scale
            }
        };
        let row = |w: usize| {
            (0..columns)
                .map(move |v| scale * angle(w, v, width).cos())
                .chain((0..columns).map(move |v| -scale * angle(w, v, width).sin()))
        };
        let back = |part: fn(f64) -> f64| {
            let values = (0..columns * width).map(|i| {
                let (v, w) = (i / width, i % width);
                multiplicity(v) * part(angle(w, v, width))
            });
            float(values.collect(), &[columns, width])
        };
        let column = |part: fn(f64) -> f64| {
            let scale = (height as f64).sqrt().recip();
            let values =
                (0..height * height).map(|i| scale * part(angle(i / height, i % height, height)));
            float(values.collect(), &[1, height, height])
        };
        let table = CoordinateMap::of(layout);
        let settings = get_or_init_device_settings::<B>(device);
        let int = |values: &[i64]| {
            let data = TensorData::new(values.to_vec(), Shape::from(vec![values.len()]));
            B::int_from_data(data.convert_dtype(settings.int_dtype.into()), device)
        };
        Self {
            rows: float((0..width).flat_map(row).collect(), &[width, 2 * columns]),
            rows_back: ComplexPair {
                re: back(f64::cos),
                im: back(|angle| -angle.sin()),
            },
            columns: (height > 1).then(|| ComplexPair {
                re: column(f64::cos),
                im: column(f64::sin),
            }),
            index: [int(&table.index[0]), int(&table.index[1])],
            sign: table.sign.map(|sign| {
                let bins = sign.len();
                float(sign, &[bins, 1, 1])
            }),
            place: int(&table.place),
            multiplicity: {
                let coordinates = table.multiplicity.len();
                float(table.multiplicity, &[coordinates, 1, 1])
            },
        }
    }
}

/// The map T as index lists.
struct CoordinateMap {
    index: [Vec<i64>; 2],
    sign: [Vec<f64>; 2],
    place: Vec<i64>,
    multiplicity: Vec<f64>,
}

impl CoordinateMap {
    fn of(layout: &Layout) -> Self {
        let ((height, _), columns) = (layout.grid(), layout.columns());
        let bins = height * columns;
        let coordinates = layout.pair_coordinates();
        let mut table = Self {
            index: [vec![0; bins], vec![0; bins]],
            sign: [vec![0.0; bins], vec![0.0; bins]],
            place: vec![0; coordinates],
            multiplicity: vec![1.0; coordinates],
        };
        for bin in 0..bins {
            let mut read = |part: usize, coordinate: usize, sign: f64| {
                table.index[part][bin] = coordinate as i64;
                table.sign[part][bin] = sign;
            };
            match layout.bin(bin / columns, bin % columns) {
                Bin::Masked => {}
                Bin::Real { coordinate } => {
                    read(0, coordinate, 1.0);
                    table.place[coordinate] = bin as i64;
                }
                Bin::Complex { coordinate } => {
                    read(0, coordinate, 1.0);
                    read(1, coordinate + 1, 1.0);
                    table.place[coordinate] = bin as i64;
                    table.place[coordinate + 1] = (bins + bin) as i64;
                    table.multiplicity[coordinate] = 2.0;
                    table.multiplicity[coordinate + 1] = 2.0;
                }
                Bin::Conjugate { coordinate } => {
                    read(0, coordinate, 1.0);
                    read(1, coordinate + 1, -1.0);
                }
            }
        }
        table
    }
}
