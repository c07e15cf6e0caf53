//! The transforms' constants and the table of T, made once per layout, device and number type.

use std::any::TypeId;
use std::sync::Arc;

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata, get_or_init_device_settings};
use burn::tensor::{Shape, TensorData};
use circulant_kernels::Bin;

use super::line::Line;
use crate::operator::{Layout, Operator};

/// The transforms and the table of T on one device.
pub(super) struct Constants<B: Backend> {
    /// `W` values to the kept columns.
    pub(super) rows: Line<B>,
    /// `[1, columns]`: how often the whole plane has a column of the half plane, 1 or 2.
    pub(super) column_counts: FloatTensor<B>,
    /// `H` values to `H` bins; absent for one row.
    pub(super) columns: Option<Line<B>>,
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
        let count = |v: usize| match v == 0 || 2 * v == width {
            true => 1.0,
            false => 2.0,
        };
        let table = CoordinateMap::of(layout);
        let settings = get_or_init_device_settings::<B>(device);
        let int = |values: &[i64]| {
            let data = TensorData::new(values.to_vec(), Shape::from(vec![values.len()]));
            B::int_from_data(data.convert_dtype(settings.int_dtype.into()), device)
        };
        Self {
            rows: Line::new(width, columns, &float),
            column_counts: float((0..columns).map(count).collect(), &[1, columns]),
            columns: (height > 1).then(|| Line::new(height, height, &float)),
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
