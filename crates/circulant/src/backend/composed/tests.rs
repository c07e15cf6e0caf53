//! The composed operations on the CPU backend against the native kernel.

use burn::backend::Flex;
use burn::tensor::{DType, TensorData};
use burn_flex::FlexTensor;
use circulant_kernels::{HalfPlane, HalfSpectrum};

use super::*;
use crate::backend::CirculantOps;
use crate::nn::InitialNumbers;

/// Sums of at most a few hundred products in f64.
const DOUBLE: f64 = 1e-10;
/// The same in f32; the composed transform sums d products one after the other.
const SINGLE: f64 = 2e-5;

struct Case {
    operator: Operator,
    batch: usize,
    filters: usize,
    bias: Option<usize>,
}

fn tensor(seed: u64, shape: &[usize], dtype: DType) -> FlexTensor {
    let values = InitialNumbers::new(seed).normal(shape.iter().product(), 1.0);
    FlexTensor::from_data(TensorData::new(values, Shape::from(shape.to_vec())).convert_dtype(dtype))
}

fn assert_close(what: &str, got: FlexTensor, expected: FlexTensor, tolerance: f64) {
    assert_eq!(got.shape(), expected.shape(), "{what}");
    let host = |x: FlexTensor| {
        x.into_data()
            .convert::<f64>()
            .try_into_vec::<f64>()
            .expect("converted")
    };
    let (got, expected) = (host(got), host(expected));
    let scale = expected
        .iter()
        .fold(1.0_f64, |scale, value| scale.max(value.abs()));
    for (a, b) in got.iter().zip(&expected) {
        assert!((a - b).abs() <= tolerance * scale, "{what}: {a} and {b}");
    }
}

impl Case {
    fn check(&self, dtype: DType, tolerance: f64) {
        let operator = &self.operator;
        let x = tensor(1, &[self.batch, operator.input_len()], dtype);
        let coordinates = tensor(2, &[self.filters, operator.coordinates()], dtype);
        let bias = self.bias.map(|len| tensor(3, &[self.filters, len], dtype));
        let shape = Shape::from(vec![self.filters, self.batch, operator.output_len()]);
        let grad = tensor(4, &[self.filters, self.batch, operator.output_len()], dtype);

        let (y, saved) = Flex::circulant_keeping(
            x.clone(),
            coordinates.clone(),
            bias.clone(),
            operator.clone(),
            shape.clone(),
        );
        let (composed_y, spectrum) = keeping::<Flex>(
            x.clone(),
            coordinates.clone(),
            bias.clone(),
            operator,
            shape.clone(),
        );
        assert_close("output", composed_y, y.clone(), tolerance);
        let without = match bias.clone() {
            None => Flex::circulant(x.clone(), coordinates.clone(), operator.clone(), shape),
            Some(bias) => Flex::circulant_biased(
                x.clone(),
                coordinates.clone(),
                bias,
                operator.clone(),
                shape,
            ),
        };
        assert_close("output without keeping", without, y.clone(), tolerance);

        let all = Wanted {
            x: true,
            coordinates: true,
            bias: bias.is_some(),
        };
        let native = Flex::circulant_backward(saved, grad.clone(), all);
        let tanh = operator.activation() == Activation::Tanh;
        let inputs = BackwardInputs {
            spectrum: &spectrum,
            x_shape: x.shape(),
            coordinates,
            bias,
            y: tanh.then_some(y),
            grad,
        };
        let composed = backward::<Flex>(operator, inputs, all);
        let pairs = [
            ("gradient of x", composed.x, native.x),
            (
                "gradient of the coordinates",
                composed.coordinates,
                native.coordinates,
            ),
            ("gradient of the bias", composed.bias, native.bias),
        ];
        for (what, composed, native) in pairs {
            assert_eq!(composed.is_some(), native.is_some(), "{what}");
            if let (Some(composed), Some(native)) = (composed, native) {
                // Gradients sum over the batch.
                assert_close(what, composed, native, tolerance * self.batch as f64);
            }
        }
    }

    fn check_both(&self) {
        self.check(DType::F64, DOUBLE);
        self.check(DType::F32, SINGLE);
    }
}

#[test]
fn signals_match_the_kernel() {
    for length in [1, 2, 3, 7, 8, 9, 28, 31, 49, 97, 128] {
        let half: usize = length / 2 + 1;
        for modes in [1, half.div_ceil(2), half] {
            for (filters, bias, activation) in [
                (1, None, Activation::Identity),
                (1, Some(1), Activation::Tanh),
                (3, Some(length), Activation::Tanh),
                (2, Some(1), Activation::Identity),
            ] {
                let layout = HalfSpectrum::with_modes(length, modes).expect("valid");
                let operator = Operator::signal(layout).with_activation(activation);
                for batch in [1, 17] {
                    Case {
                        operator: operator.clone(),
                        batch,
                        filters,
                        bias,
                    }
                    .check_both();
                }
            }
        }
    }
}

#[test]
fn images_match_the_kernel() {
    for (height, width) in [
        (1, 1),
        (1, 6),
        (5, 1),
        (2, 2),
        (4, 6),
        (5, 7),
        (7, 4),
        (8, 9),
    ] {
        for radius in [0.4, 1.0] {
            for (channels_in, channels_out) in [(1, 1), (2, 3), (3, 1)] {
                let plane = HalfPlane::with_radius(height, width, radius).expect("valid");
                let operator = Operator::image(plane, channels_in, channels_out).expect("valid");
                let one_per_pixel = channels_out * height * width;
                for (filters, bias, activation) in [
                    (1, None, Activation::Identity),
                    (1, Some(one_per_pixel), Activation::Tanh),
                    (2, Some(channels_out), Activation::Tanh),
                ] {
                    let operator = operator.with_activation(activation);
                    Case {
                        operator,
                        batch: 3,
                        filters,
                        bias,
                    }
                    .check_both();
                }
            }
        }
    }
}

#[test]
fn filter_transforms_match_the_kernel() {
    let signals = [1, 2, 5, 8, 13].map(|length| {
        let layout = HalfSpectrum::with_modes(length, (length / 2).max(1)).expect("valid");
        Operator::signal(layout)
    });
    let images = [(1, 1, 1.0), (4, 6, 1.0), (5, 7, 0.6)].map(|(height, width, radius)| {
        Operator::image(
            HalfPlane::with_radius(height, width, radius).expect("valid"),
            2,
            3,
        )
        .expect("valid")
    });
    for operator in signals.into_iter().chain(images) {
        let filter_len = operator.layout().channels().0 * operator.output_len();
        let filters = tensor(1, &[2, filter_len], DType::F64);
        let shape = Shape::from(vec![2, operator.coordinates()]);
        let native = Flex::coordinates_of_filters(filters.clone(), operator.clone(), shape.clone());
        assert_close(
            "coordinates",
            analyse::<Flex>(filters.clone(), &operator, shape),
            native,
            DOUBLE,
        );
        let grad = tensor(2, &[2, operator.coordinates()], DType::F64);
        let native =
            Flex::coordinates_of_filters_adjoint(grad.clone(), operator.clone(), filters.shape());
        assert_close(
            "adjoint",
            analyse_adjoint::<Flex>(grad, &operator, filters.shape()),
            native,
            DOUBLE,
        );
    }
}

#[test]
#[should_panic(expected = "F32 or F64")]
fn other_number_types_are_named() {
    let operator = Operator::signal(HalfSpectrum::new(4).expect("valid"));
    let (x, coordinates) = (tensor(1, &[2, 4], DType::F16), tensor(2, &[4], DType::F16));
    Flex::circulant(x, coordinates, operator, Shape::from(vec![2, 4]));
}
