//! The operator and its gradients out of ordinary tensor operations, for any backend.
//!
//! The transform is separable in 2D and over the kept columns of the half plane only: `X = F_H x F_W`, and back
//! `y = Re(conj(F_H) Y m conj(F_W))` with the multiplicity `m` of a column (1 or 2). Along an axis it is one or two products with
//! small matrices (`line.rs`). The map T is a selection with signs. A signal is an image of one row and one channel. This costs
//! `O(d^1.5)` per row instead of `O(d log d)` and `O(d)` constants, and every device has what it needs.
//!
//! | name | shape |
//! | --- | --- |
//! | spectrum | two tensors `[bins, batch, C]` |
//! | mixing matrices | two tensors `[bins, C_in, C_out]` |

mod backends;
mod constants;
mod filters;
mod line;

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Slice};
use circulant_kernels::Activation;

use self::constants::Constants;
pub use self::filters::{analyse, analyse_adjoint};

use super::{CirculantBackend, OperatorGradients, Saved, Wanted};
use crate::operator::{Layout, Operator};

/// A complex tensor.
#[derive(Debug, Clone)]
pub struct ComplexPair<B: Backend> {
    re: FloatTensor<B>,
    im: FloatTensor<B>,
}

fn reshape<B: Backend>(tensor: FloatTensor<B>, shape: &[usize]) -> FloatTensor<B> {
    B::float_reshape(tensor, Shape::from(shape.to_vec()))
}

fn part<B: Backend>(
    tensor: FloatTensor<B>,
    dim: usize,
    start: usize,
    len: usize,
) -> FloatTensor<B> {
    let shape = tensor.shape();
    let slices: Vec<_> = (0..shape.num_dims())
        .map(|axis| {
            Slice::from(if axis == dim {
                start..start + len
            } else {
                0..shape[axis]
            })
        })
        .collect();
    B::float_slice(tensor, &slices)
}

/// The operator on one device: its sizes with the constants.
struct Composed<'a, B: Backend> {
    layout: &'a Layout,
    constants: Arc<Constants<B>>,
}

impl<'a, B: Backend> Composed<'a, B> {
    fn of(operator: &'a Operator, like: &FloatTensor<B>) -> Self {
        Self {
            layout: operator.layout(),
            constants: Constants::of(operator, like),
        }
    }

    /// `[batch, channels, H, W]` to `[bins, batch, channels]`.
    fn transform(&self, x: FloatTensor<B>, channels: usize) -> ComplexPair<B> {
        let ((height, width), columns) = (self.layout.grid(), self.layout.columns());
        let planes = x.shape().num_elements() / (height * width);
        let batch = planes / channels;
        let rows = reshape::<B>(x, &[planes * height, width]);
        let mut bins = self.constants.rows.there(rows, None);
        if let Some(transform) = &self.constants.columns {
            let turned = bins.map(|x| {
                let x = reshape::<B>(x, &[planes, height, columns]);
                reshape::<B>(B::float_swap_dims(x, 1, 2), &[planes * columns, height])
            });
            bins = transform.there(turned.re, Some(turned.im));
        }
        bins.map(|x| {
            let x = reshape::<B>(x, &[batch, channels, columns, height]);
            let x = B::float_permute(x, &[3, 2, 0, 1]);
            reshape::<B>(x, &[height * columns, batch, channels])
        })
    }

    /// `[bins, batch, channels]` to `[batch*channels*H*W]`, as a matrix of rows.
    fn inverse(&self, spectrum: ComplexPair<B>) -> FloatTensor<B> {
        let ((height, _), columns) = (self.layout.grid(), self.layout.columns());
        let shape = spectrum.re.shape();
        let planes = shape[1] * shape[2];
        let mut rows = spectrum.map(|x| {
            let x = reshape::<B>(x, &[height, columns, planes]);
            reshape::<B>(B::float_permute(x, &[2, 1, 0]), &[planes * columns, height])
        });
        if let Some(transform) = &self.constants.columns {
            rows = transform.back(rows);
        }
        let rows = rows.map(|x| {
            let x = reshape::<B>(x, &[planes, columns, height]);
            let x = reshape::<B>(B::float_swap_dims(x, 1, 2), &[planes * height, columns]);
            B::float_mul(x, self.constants.column_counts.clone())
        });
        self.constants.rows.back_real(rows)
    }

    /// T: coordinates `[coordinate, C_in, C_out]` to `[bins, C_in, C_out]`.
    fn unpack(&self, coordinates: FloatTensor<B>) -> ComplexPair<B> {
        let select = |which: usize| {
            let values =
                B::float_select(coordinates.clone(), 0, self.constants.index[which].clone());
            B::float_mul(values, self.constants.sign[which].clone())
        };
        ComplexPair {
            re: select(0),
            im: select(1),
        }
    }

    /// Every coordinate's number out of `[bins, C_in, C_out]`.
    fn pack(&self, bins: ComplexPair<B>) -> FloatTensor<B> {
        B::float_select(
            B::float_cat(vec![bins.re, bins.im], 0),
            0,
            self.constants.place.clone(),
        )
    }

    /// `[filters, d_eff]` in any shape to one `[coordinate, C_in, C_out]` per filter.
    fn filters(&self, coordinates: FloatTensor<B>) -> Vec<FloatTensor<B>> {
        let (channels_in, channels_out) = self.layout.channels();
        let one = self.layout.pair_coordinates();
        let count = coordinates.shape().num_elements() / (one * channels_in * channels_out);
        let all = reshape::<B>(coordinates, &[count * one, channels_in, channels_out]);
        (0..count)
            .map(|f| part::<B>(all.clone(), 0, f * one, one))
            .collect()
    }

    fn product(&self, lhs: &FloatTensor<B>, rhs: &FloatTensor<B>) -> FloatTensor<B> {
        let (lhs, rhs) = (lhs.clone(), rhs.clone());
        if self.layout.channels() == (1, 1) {
            B::float_mul(lhs, rhs)
        } else {
            B::float_matmul(lhs, rhs)
        }
    }

    /// `X K` per bin.
    fn mix(&self, x: &ComplexPair<B>, k: &ComplexPair<B>) -> ComplexPair<B> {
        ComplexPair {
            re: B::float_sub(self.product(&x.re, &k.re), self.product(&x.im, &k.im)),
            im: B::float_add(self.product(&x.re, &k.im), self.product(&x.im, &k.re)),
        }
    }

    /// `G K^H` per bin.
    fn mix_adjoint(&self, g: &ComplexPair<B>, k: &ComplexPair<B>) -> ComplexPair<B> {
        let turned = |x: &FloatTensor<B>| B::float_permute(x.clone(), &[0, 2, 1]);
        let k = ComplexPair::<B> {
            re: turned(&k.re),
            im: turned(&k.im),
        };
        ComplexPair {
            re: B::float_add(self.product(&g.re, &k.re), self.product(&g.im, &k.im)),
            im: B::float_sub(self.product(&g.im, &k.re), self.product(&g.re, &k.im)),
        }
    }

    /// `X^H G` per bin: the sum over the batch.
    fn correlate(&self, x: &ComplexPair<B>, g: &ComplexPair<B>) -> ComplexPair<B> {
        let product = |x: &FloatTensor<B>, g: &FloatTensor<B>| {
            if self.layout.channels() == (1, 1) {
                B::float_sum_dim(B::float_mul(x.clone(), g.clone()), 1)
            } else {
                B::float_matmul(B::float_permute(x.clone(), &[0, 2, 1]), g.clone())
            }
        };
        ComplexPair {
            re: B::float_add(product(&x.re, &g.re), product(&x.im, &g.im)),
            im: B::float_sub(product(&x.re, &g.im), product(&x.im, &g.re)),
        }
    }

    fn forward(
        &self,
        spectrum: &ComplexPair<B>,
        coordinates: FloatTensor<B>,
        bias: Option<FloatTensor<B>>,
        (operator, shape): (&Operator, Shape),
    ) -> FloatTensor<B> {
        let batch = spectrum.re.shape()[1];
        let (_, channels_out) = self.layout.channels();
        let filters = self.filters(coordinates);
        let count = filters.len();
        let pixels = operator.output_len() / channels_out;
        let outputs = filters.into_iter().map(|coordinates| {
            let y = self.inverse(self.mix(spectrum, &self.unpack(coordinates)));
            reshape::<B>(y, &[1, batch, channels_out, pixels])
        });
        let mut y = B::float_cat(outputs.collect(), 0);
        if let Some(bias) = bias {
            y = B::float_add(
                y,
                reshape::<B>(bias.clone(), &bias_shape::<B>(&bias, count, channels_out)),
            );
        }
        if operator.activation() == Activation::Tanh {
            y = B::float_tanh(y);
        }
        B::float_reshape(y, shape)
    }
}

/// `[filters, 1, C_out, 1]` or `[filters, 1, C_out, H*W]`.
fn bias_shape<B: Backend>(
    bias: &FloatTensor<B>,
    filters: usize,
    channels_out: usize,
) -> [usize; 4] {
    [
        filters,
        1,
        channels_out,
        bias.shape().num_elements() / (filters * channels_out),
    ]
}

/// [`CirculantOps::circulant_biased`](super::CirculantOps::circulant_biased) of any backend.
pub fn apply<B: Backend>(
    x: FloatTensor<B>,
    coordinates: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    operator: &Operator,
    shape: Shape,
) -> FloatTensor<B> {
    let composed = Composed::<B>::of(operator, &x);
    let spectrum = composed.transform(x, operator.layout().channels().0);
    composed.forward(&spectrum, coordinates, bias, (operator, shape))
}

/// [`CirculantBackend::circulant_keeping`] of any backend.
pub fn apply_keeping<B: CirculantBackend<Kept = ComplexPair<B>>>(
    x: FloatTensor<B>,
    coordinates: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    operator: Operator,
    shape: Shape,
) -> (FloatTensor<B>, Saved<B>) {
    let x_shape = x.shape();
    let (y, kept) = keeping::<B>(x, coordinates.clone(), bias.clone(), &operator, shape);
    let needs_output = operator.activation() != Activation::Identity;
    let saved = Saved {
        kept,
        x_shape,
        coordinates,
        bias,
        y: needs_output.then(|| y.clone()),
        operator,
    };
    (y, saved)
}

/// Forward with the spectrum of the input.
pub fn keeping<B: Backend>(
    x: FloatTensor<B>,
    coordinates: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    operator: &Operator,
    shape: Shape,
) -> (FloatTensor<B>, ComplexPair<B>) {
    let composed = Composed::<B>::of(operator, &x);
    let spectrum = composed.transform(x, operator.layout().channels().0);
    let y = composed.forward(&spectrum, coordinates, bias, (operator, shape));
    (y, spectrum)
}

/// What the composed backward pass reads.
#[derive(Debug)]
pub struct BackwardInputs<'a, B: Backend> {
    /// The spectrum of the input.
    pub spectrum: &'a ComplexPair<B>,
    /// The shape of the input.
    pub x_shape: Shape,
    /// The coordinates.
    pub coordinates: FloatTensor<B>,
    /// The bias, for its shape.
    pub bias: Option<FloatTensor<B>>,
    /// The output, if an activation needs it.
    pub y: Option<FloatTensor<B>>,
    /// The gradient of the output.
    pub grad: FloatTensor<B>,
}

/// [`CirculantBackend::circulant_backward`] of any backend.
pub fn backward_saved<B: CirculantBackend<Kept = ComplexPair<B>>>(
    saved: Saved<B>,
    grad: FloatTensor<B>,
    wanted: Wanted,
) -> OperatorGradients<B> {
    let inputs = BackwardInputs {
        spectrum: &saved.kept,
        x_shape: saved.x_shape,
        coordinates: saved.coordinates,
        bias: saved.bias,
        y: saved.y,
        grad,
    };
    backward(&saved.operator, inputs, wanted)
}

/// The gradients from what the forward pass left.
pub fn backward<B: Backend>(
    operator: &Operator,
    inputs: BackwardInputs<'_, B>,
    wanted: Wanted,
) -> OperatorGradients<B> {
    let BackwardInputs {
        spectrum,
        x_shape,
        coordinates,
        bias,
        y,
        grad,
    } = inputs;
    let composed = Composed::<B>::of(operator, &grad);
    let (_, channels_out) = operator.layout().channels();
    let grad = match y {
        // The derivative of tanh is 1 - y^2.
        Some(y) => B::float_sub(grad.clone(), B::float_mul(grad, B::float_mul(y.clone(), y))),
        None => grad,
    };
    let coordinates_shape = coordinates.shape();
    let filters = composed.filters(coordinates);
    let (count, batch) = (filters.len(), spectrum.re.shape()[1]);
    let pixels = operator.output_len() / channels_out;
    let grad = reshape::<B>(grad, &[count, batch, channels_out, pixels]);

    let bias = bias.filter(|_| wanted.bias).map(|bias| {
        let [.., last] = bias_shape::<B>(&bias, count, channels_out);
        let sum = B::float_sum_dim(grad.clone(), 1);
        let sum = if last == 1 {
            B::float_sum_dim(sum, 3)
        } else {
            sum
        };
        B::float_reshape(sum, bias.shape())
    });
    let (mut x_spectrum, mut coordinate_gradients) = (None::<ComplexPair<B>>, Vec::new());
    if wanted.x || wanted.coordinates {
        for (f, coordinates) in filters.into_iter().enumerate() {
            let g = composed.transform(part::<B>(grad.clone(), 0, f, 1), channels_out);
            if wanted.coordinates {
                let picked = composed.pack(composed.correlate(spectrum, &g));
                coordinate_gradients.push(B::float_mul(
                    picked,
                    composed.constants.multiplicity.clone(),
                ));
            }
            if wanted.x {
                let one = composed.mix_adjoint(&g, &composed.unpack(coordinates));
                x_spectrum = Some(match x_spectrum {
                    None => one,
                    Some(sum) => ComplexPair {
                        re: B::float_add(sum.re, one.re),
                        im: B::float_add(sum.im, one.im),
                    },
                });
            }
        }
    }
    OperatorGradients {
        x: x_spectrum.map(|spectrum| B::float_reshape(composed.inverse(spectrum), x_shape)),
        coordinates: wanted
            .coordinates
            .then(|| B::float_reshape(B::float_cat(coordinate_gradients, 0), coordinates_shape)),
        bias,
    }
}

#[cfg(test)]
mod tests;
