//! GELU in its exact form and its gradient, alone or behind a bias, over matrices `[rows, n]`:
//! `gelu(x) = x P(x)`, `gelu'(x) = P(x) + x density(x)`, with `P` the normal distribution
//! `(1 + erf(x/sqrt(2)))/2`.
//!
//! With the tail `Q(a) = P(-a)` both are free of cases and cancellation but for the sign:
//! `gelu(x) = max(x, 0) - |x| Q(|x|)`, `gelu'(x) = u` for negative `x` and `1 - u` otherwise, with
//! `u = Q(|x|) - |x| density(|x|)`. The backward pass reads `x` again and saves nothing else: the
//! exponential costs less than another matrix from memory.
//!
//! In f32 the absolute error is below 2e-7 max(1, |x|) in both directions. Infinities give their
//! limits, `gelu(-inf) = 0` among them, NaN gives NaN.

use rayon::prelude::*;

use crate::error::{KernelError, expect_len};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, fewest_chunks, rows_per_chunk};
use crate::runtime::partial_sums::{add_parts, rows_per_sum};
use crate::runtime::scratch::Scratch;
use crate::vector::normal_tail::NormalTail;
use crate::vector::{Kernel, Present, Vector};

/// `y = gelu::<V>(x)`.
///
/// ```
/// use circulant_kernels::gelu_into;
/// let mut y = [0.0f32; 2];
/// gelu_into(&[0.0, 1.0], &mut y)?;
/// assert!(y[0] == 0.0 && (y[1] - 0.841_344_7).abs() < 1e-6);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn gelu_into<T: Real>(x: &[T], y: &mut [T]) -> Result<(), KernelError> {
    forward(x, &[], CHUNK, y)
}

/// `y = gelu::<V>(x + bias)`, for rows as long as the bias.
pub fn bias_gelu_into<T: Real>(x: &[T], bias: &[T], y: &mut [T]) -> Result<(), KernelError> {
    expect_rows(x.len(), bias.len())?;
    forward(x, bias, rows_per_chunk(bias.len()) * bias.len(), y)
}

fn forward<T: Real>(x: &[T], bias: &[T], chunk: usize, y: &mut [T]) -> Result<(), KernelError> {
    expect_len("y", y.len(), x.len())?;
    x.par_chunks(chunk)
        .zip(y.par_chunks_mut(chunk))
        .with_min_len(fewest_chunks(x.len()))
        .for_each(|(x, y)| T::gelu_chunk(best_isa(), GeluChunk { x, bias, y }));
    Ok(())
}

/// `out = grad*gelu'(x)`: the gradient of `x` from that of `y = gelu::<V>(x)`.
pub fn gelu_backward<T: Real>(x: &[T], grad: &[T], out: &mut [T]) -> Result<(), KernelError> {
    backward(x, &[], CHUNK, grad, out)
}

/// `out = grad*gelu'(x + bias)`, the gradient of `x`, and the sum of its rows, that of the bias.
pub fn bias_gelu_backward<T: Real>(
    x: &[T],
    bias: &[T],
    grad: &[T],
    out: &mut [T],
    bias_gradient: Option<&mut [T]>,
) -> Result<(), KernelError> {
    let n = bias.len();
    expect_rows(x.len(), n)?;
    let Some(bias_gradient) = bias_gradient else {
        return backward(x, bias, rows_per_chunk(n) * n, grad, out);
    };
    expect_len("grad", grad.len(), x.len())?;
    expect_len("out", out.len(), x.len())?;
    expect_len("the gradient of the bias", bias_gradient.len(), n)?;
    let chunk = rows_per_sum(n) * n;
    let mut sums = Scratch::take(x.len().div_ceil(chunk) * n);
    x.par_chunks(chunk)
        .zip(grad.par_chunks(chunk))
        .zip(out.par_chunks_mut(chunk).zip(sums.par_chunks_mut(n)))
        .with_min_len(fewest_chunks(x.len()))
        .for_each(|((x, grad), (out, sums))| {
            let job = GeluBackwardChunk {
                x,
                bias,
                grad,
                out,
                sums: Some(sums),
            };
            T::gelu_backward_chunk(best_isa(), job);
        });
    add_parts(&sums, n, 0, bias_gradient);
    Ok(())
}

fn backward<T: Real>(
    x: &[T],
    bias: &[T],
    chunk: usize,
    grad: &[T],
    out: &mut [T],
) -> Result<(), KernelError> {
    expect_len("grad", grad.len(), x.len())?;
    expect_len("out", out.len(), x.len())?;
    x.par_chunks(chunk)
        .zip(grad.par_chunks(chunk))
        .zip(out.par_chunks_mut(chunk))
        .with_min_len(fewest_chunks(x.len()))
        .for_each(|((x, grad), out)| {
            let job = GeluBackwardChunk {
                x,
                bias,
                grad,
                out,
                sums: None,
            };
            T::gelu_backward_chunk(best_isa(), job);
        });
    Ok(())
}

pub(crate) fn expect_rows(got: usize, unit: usize) -> Result<(), KernelError> {
    if unit == 0 {
        return Err(KernelError::ZeroSize {
            what: "the length of a row",
        });
    }
    if got.is_multiple_of(unit) {
        Ok(())
    } else {
        Err(KernelError::Multiple {
            what: "x",
            unit,
            got,
        })
    }
}

#[inline(always)]
fn gelu<V: Vector>(x: V::Scalar) -> V::Scalar {
    let zero = num_traits::Zero::zero();
    let size = x.tail_argument();
    let tail = size.normal_tail::<V>();
    // Not the other way round: NaN stays NaN.
    let positive = if x < zero { zero } else { x };
    positive - tail.late * (tail.early * (tail.ratio * size))
}

#[inline(always)]
fn derivative<V: Vector>(x: V::Scalar) -> V::Scalar {
    let (zero, one): (V::Scalar, V::Scalar) = (num_traits::Zero::zero(), num_traits::One::one());
    let size = x.tail_argument();
    let tail = size.normal_tail::<V>();
    let left = tail.late * (tail.early * (tail.ratio - size));
    if x < zero { left } else { one - left }
}

/// Whole rows, or any chunk when there is no bias (an empty one).
pub struct GeluChunk<'a, T> {
    pub(crate) x: &'a [T],
    pub(crate) bias: &'a [T],
    pub(crate) y: &'a mut [T],
}

impl<T: Real> Kernel<T> for GeluChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        if self.bias.is_empty() {
            for (y, &x) in self.y.iter_mut().zip(self.x) {
                *y = gelu::<V>(x);
            }
            return;
        }
        let n = self.bias.len();
        for (x, y) in self.x.chunks_exact(n).zip(self.y.chunks_exact_mut(n)) {
            for ((y, &x), &bias) in y.iter_mut().zip(x).zip(self.bias) {
                *y = gelu::<V>(x + bias);
            }
        }
    }
}

/// The gradient of such a chunk, and the sums of its rows if they are asked for.
pub struct GeluBackwardChunk<'a, T> {
    pub(crate) x: &'a [T],
    pub(crate) bias: &'a [T],
    pub(crate) grad: &'a [T],
    pub(crate) out: &'a mut [T],
    pub(crate) sums: Option<&'a mut [T]>,
}

impl<T: Real> Kernel<T> for GeluBackwardChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        if self.bias.is_empty() {
            for ((out, &x), &g) in self.out.iter_mut().zip(self.x).zip(self.grad) {
                *out = g * derivative::<V>(x);
            }
            return;
        }
        let n = self.bias.len();
        let inputs = self.x.chunks_exact(n).zip(self.grad.chunks_exact(n));
        let rows = inputs.zip(self.out.chunks_exact_mut(n));
        let Some(sums) = self.sums else {
            for ((x, grad), out) in rows {
                for (((out, &x), &g), &bias) in out.iter_mut().zip(x).zip(grad).zip(self.bias) {
                    *out = g * derivative::<V>(x + bias);
                }
            }
            return;
        };
        sums.fill(T::zero());
        for ((x, grad), out) in rows {
            let inputs = x.iter().zip(grad).zip(self.bias);
            for ((out, sum), ((&x, &g), &bias)) in out.iter_mut().zip(sums.iter_mut()).zip(inputs) {
                *out = g * derivative::<V>(x + bias);
                *sum = *sum + *out;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::normal::standard_normal;
    use crate::random::philox::NoiseKey;
    use crate::vector::normal_tail::slow_tail;

    /// The bound of the head of the file.
    const ERROR: f64 = 2e-7;
    /// Roundings of f64 beside numbers up to ten.
    const WIDE_ERROR: f64 = 4e-15;

    fn oracle(x: f64) -> f64 {
        x * if x < 0.0 {
            slow_tail(-x)
        } else {
            1.0 - slow_tail(x)
        }
    }

    fn slope(x: f64) -> f64 {
        let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        (if x < 0.0 {
            slow_tail(-x)
        } else {
            1.0 - slow_tail(x)
        }) + x * density
    }

    fn numbers<T: Real>(stream: u64, len: usize) -> Vec<T> {
        let mut out = vec![T::zero(); len];
        standard_normal(NoiseKey { seed: 4, stream }, &mut out);
        out
    }

    fn check_everywhere<T: Real>(error: f64) {
        let x: Vec<T> = (-150_000..150_000)
            .map(|i| T::of(f64::from(i) * 1e-4))
            .collect();
        let (mut y, mut d) = (x.clone(), x.clone());
        gelu_into(&x, &mut y).unwrap();
        gelu_backward(&x, &vec![T::one(); x.len()], &mut d).unwrap();
        for ((x, y), d) in x.iter().zip(&y).zip(&d) {
            let x = x.wide();
            let bound = error * x.abs().max(1.0);
            assert!((y.wide() - oracle(x)).abs() <= bound, "gelu({x}) = {y:?}");
            assert!((d.wide() - slope(x)).abs() <= bound, "gelu'({x}) = {d:?}");
        }
    }

    #[test]
    fn accurate_everywhere() {
        check_everywhere::<f32>(ERROR);
        check_everywhere::<f64>(WIDE_ERROR);
    }

    /// `1 + erf` of f32 would be zero from -5.5 on.
    #[test]
    fn far_to_the_left_digits_remain() {
        let mut y = [0.0f32; 3];
        gelu_into(&[-6.0, -9.0, -12.0], &mut y).unwrap();
        for (y, x) in y.into_iter().zip([-6.0, -9.0, -12.0]) {
            assert!((f64::from(y) / oracle(x) - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn the_ends() {
        let x = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN, -0.0];
        let (mut y, mut d) = ([0.0; 5], [0.0; 5]);
        gelu_into(&x, &mut y).unwrap();
        gelu_backward(&x, &[1.0; 5], &mut d).unwrap();
        assert!(y[0] == f32::INFINITY && y[1] == 0.0 && y[2].is_nan());
        assert!(d[0] == 1.0 && d[1] == 0.0 && d[2].is_nan());
        assert!(y[3] == 0.0 && d[3] == 0.0 && y[4] == 0.0 && d[4] == 0.5);
    }

    #[test]
    fn a_bias_is_added_first_and_gets_the_sum_of_the_rows() {
        for (rows, n) in [(0, 3), (1, 1), (3, 7), (31, 64), (200, 513), (2, 10_007)] {
            let (x, bias, grad): (Vec<f64>, Vec<f64>, Vec<f64>) =
                (numbers(0, rows * n), numbers(1, n), numbers(2, rows * n));
            let sums: Vec<f64> = (0..rows * n).map(|i| x[i] + bias[i % n]).collect();
            let (mut expected, mut y) = (x.clone(), x.clone());
            gelu_into(&sums, &mut expected).unwrap();
            bias_gelu_into(&x, &bias, &mut y).unwrap();
            assert_eq!(y, expected);

            let (mut of_bias, mut again) = (vec![f64::NAN; n], x.clone());
            gelu_backward(&sums, &grad, &mut expected).unwrap();
            bias_gelu_backward(&x, &bias, &grad, &mut y, Some(&mut of_bias)).unwrap();
            bias_gelu_backward(&x, &bias, &grad, &mut again, None).unwrap();
            assert!(y == expected && again == expected);
            for (j, sum) in of_bias.iter().enumerate() {
                let exact: f64 = y.iter().skip(j).step_by(n).sum();
                assert!((sum - exact).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_gradient_is_that_of_central_differences() {
        const STEP: f64 = 1e-5;
        let x: Vec<f64> = numbers(5, 101);
        let value = |shift: f64| {
            let moved: Vec<f64> = x.iter().map(|x| x + shift).collect();
            let mut y = moved.clone();
            gelu_into(&moved, &mut y).unwrap();
            y
        };
        let (above, below) = (value(STEP), value(-STEP));
        let mut gradient = x.clone();
        gelu_backward(&x, &[1.0; 101], &mut gradient).unwrap();
        for ((g, above), below) in gradient.iter().zip(above).zip(below) {
            assert!((g - (above - below) / (2.0 * STEP)).abs() < 1e-9);
        }
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let (x, grad): (Vec<f32>, Vec<f32>) = (numbers(0, 300 * 512), numbers(1, 300 * 512));
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let (mut out, mut sums) = (x.clone(), vec![0.0; 512]);
                bias_gelu_backward(&x, &x[..512], &grad, &mut out, Some(&mut sums)).unwrap();
                (out, sums)
            })
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn wrong_sizes_are_errors() {
        assert!(gelu_into(&[0.0f32; 3], &mut [0.0; 2]).is_err());
        assert!(gelu_backward(&[0.0f32; 3], &[0.0; 2], &mut [0.0; 3]).is_err());
        assert!(bias_gelu_into(&[0.0f32; 3], &[0.0; 2], &mut [0.0; 3]).is_err());
        assert!(bias_gelu_into(&[0.0f32; 3], &[], &mut [0.0; 3]).is_err());
        let mut of_bias = [0.0f32; 2];
        let result = bias_gelu_backward(
            &[0.0; 3],
            &[0.0; 3],
            &[0.0; 3],
            &mut [0.0; 3],
            Some(&mut of_bias),
        );
        assert!(result.is_err());
    }
}
