//! The Lipschitz constants of activations (`docs/mathematics.md`, section 8), and the error of their f32 versions. The gelu is the exact
//! one with the error function, Burn's `gelu`; the approximation by tanh is another function.

use super::UpperBound;
use super::rounding::UNIT;

/// An activation with a known Lipschitz constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LipschitzActivation {
    /// The hyperbolic tangent of this library: [`functional::tanh`](crate::functional::tanh) and the layers' `forward_tanh`.
    Tanh,
    /// Burn's own `Tensor::tanh`, which calls that of the platform.
    TensorTanh,
    /// `max(x, 0)`.
    Relu,
    /// [`functional::max_min`](crate::functional::max_min): pairs in order. It is not applied to every number alone, but keeps norms all the same.
    MaxMin,
    /// `|x|`.
    Absolute,
    /// `1/(1 + e^-x)`.
    Sigmoid,
    /// `x Phi(x)` with the exact error function.
    Gelu,
    /// `x sigmoid(x)`.
    Silu,
}

/// Relative error of the f32 tanh of the kernels: below 4 units in the last place (8 `u`), checked for every f32 by the test
/// `every_f32_tanh` of this file.
const TANH_ERROR: f64 = 9.0 * UNIT;
/// Error of the f32 sigmoid in units of one, of gelu and silu in units of `|x|`: two to six roundings and an `exp` or `erf`
/// of at most a few units in the last place each.
const SMOOTH_ERROR: f64 = 16.0 * UNIT;
/// Where values underflow, tanh divides subnormal ones by `4.9e-3`.
pub(super) const UNDERFLOW: f64 = 1e-40;

impl LipschitzActivation {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tanh | Self::TensorTanh => "tanh",
            Self::Relu => "relu",
            Self::MaxMin => "maxmin",
            Self::Absolute => "absolute value",
            Self::Sigmoid => "sigmoid",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
        }
    }

    /// Whether the error of its f32 version is proven. It is where this library computes it: relu, maxmin and the absolute value are exact, and tanh was tried for every
    /// f32. The others call functions of the platform (`exp`, `erf`, `tanh`), whose errors are bounded by samples only; on a machine
    /// at hand `every_f32_of_the_platform`, a test of this file, tries them all.
    pub fn is_proven(self) -> bool {
        matches!(
            self,
            Self::Tanh | Self::Relu | Self::MaxMin | Self::Absolute
        )
    }

    /// The largest slope, rounded up.
    pub fn lipschitz(self) -> UpperBound {
        UpperBound::new(match self {
            Self::Tanh | Self::TensorTanh | Self::Relu | Self::MaxMin | Self::Absolute => 1.0,
            Self::Sigmoid => 0.25,
            Self::Gelu => 1.128_904_145_185_156,
            Self::Silu => 1.099_839_320_128_868,
        })
    }

    /// The largest 2-norm of `size` outputs when the inputs have the norm `norm`. Without a size, infinite where the output
    /// does not vanish with the input.
    pub(super) fn output_norm(self, norm: f64, size: Option<usize>) -> f64 {
        let all_ones = size.map_or(f64::INFINITY, |size| (size as f64).sqrt());
        match self {
            Self::Tanh | Self::TensorTanh => norm.min(all_ones),
            // |f(x)| <= |x| for all of these.
            Self::Relu | Self::MaxMin | Self::Absolute | Self::Gelu | Self::Silu => norm,
            Self::Sigmoid => all_ones,
        }
    }

    /// The 2-norm of the error that f32 adds, for `size` inputs of the norm `norm`.
    pub(super) fn error(self, norm: f64, size: Option<usize>) -> f64 {
        let output = self.output_norm(norm, size);
        let absolute = UNDERFLOW * size.map_or(f64::INFINITY, |size| (size as f64).sqrt());
        match self {
            Self::Relu | Self::MaxMin | Self::Absolute => 0.0,
            Self::Tanh | Self::TensorTanh => TANH_ERROR * output + absolute,
            Self::Sigmoid => SMOOTH_ERROR * output + absolute,
            Self::Gelu | Self::Silu => SMOOTH_ERROR * norm + absolute,
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Tensor, TensorData, activation};

    use super::*;

    fn exact(kind: LipschitzActivation, x: f64) -> f64 {
        // The complementary forms keep their relative accuracy far out.
        let sigmoid = 1.0 / (1.0 + (-x).exp());
        match kind {
            LipschitzActivation::Tanh | LipschitzActivation::TensorTanh => x.tanh(),
            LipschitzActivation::Relu => x.max(0.0),
            LipschitzActivation::Absolute => x.abs(),
            LipschitzActivation::MaxMin => unreachable!("not of one number"),
            LipschitzActivation::Sigmoid => sigmoid,
            LipschitzActivation::Silu => x * sigmoid,
            LipschitzActivation::Gelu => x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        }
    }

    #[test]
    fn constants_are_the_largest_slopes() {
        // t tanh t is increasing; it passes 1 below the constant's t.
        let t = 2.0 * LipschitzActivation::Silu.lipschitz().get() - 1.0;
        assert!(t * t.tanh() > 1.0 && (t - 1e-14) * (t - 1e-14).tanh() < 1.0);
        // (1 + erf(1))/2 + e^-1/sqrt(pi), with erf(1) to 20 digits.
        let gelu =
            0.5 + 0.842_700_792_949_714_9 / 2.0 + (-1.0_f64).exp() / std::f64::consts::PI.sqrt();
        let constant = LipschitzActivation::Gelu.lipschitz().get();
        assert!(constant > gelu && constant < gelu + 2e-15, "{gelu}");
        for kind in [
            LipschitzActivation::Tanh,
            LipschitzActivation::Relu,
            LipschitzActivation::Absolute,
            LipschitzActivation::Sigmoid,
            LipschitzActivation::Silu,
        ] {
            let slopes = (-4000..4000).map(|i| {
                let (a, b) = (f64::from(i) * 5e-3, f64::from(i + 1) * 5e-3);
                (exact(kind, b) - exact(kind, a)).abs() / (b - a)
            });
            let steepest = slopes.fold(0.0, f64::max);
            let constant = kind.lipschitz().get();
            assert!(
                steepest <= constant * (1.0 + 1e-9) && steepest > 0.999 * constant,
                "{kind:?}"
            );
        }
    }

    /// Largest error of Burn's f32 functions in units of what [`LipschitzActivation::error`] allows.
    #[test]
    fn f32_errors_are_within_the_allowance() {
        let device = crate::cpu();
        let count = 400_000;
        let x: Vec<f32> = (0..count).map(|i| (i as f32 - 200_000.0) * 1e-4).collect();
        let tensor = || Tensor::<1>::from_data(TensorData::new(x.clone(), [count]), &device);
        for (kind, y) in [
            (LipschitzActivation::Tanh, crate::functional::tanh(tensor())),
            (LipschitzActivation::TensorTanh, tensor().tanh()),
            (LipschitzActivation::Relu, activation::relu(tensor())),
            (LipschitzActivation::Sigmoid, activation::sigmoid(tensor())),
            (LipschitzActivation::Silu, activation::silu(tensor())),
            (LipschitzActivation::Gelu, activation::gelu(tensor())),
        ] {
            for (index, y) in crate::nn::to_host(y).into_iter().enumerate() {
                check(kind, f64::from(x[index]), y);
            }
        }
    }

    fn check(kind: LipschitzActivation, x: f64, y: f64) {
        let (error, allowed) = ((y - exact(kind, x)).abs(), kind.error(x.abs(), Some(1)));
        assert!(error <= allowed, "{kind:?}({x}): {error} > {allowed}");
    }

    /// The functions of the platform that runs this test, at every finite f32.
    #[test]
    #[ignore = "many minutes: cargo test --release -p circulant --lib -- --ignored every_f32_of_the_platform"]
    fn every_f32_of_the_platform() {
        type Function = fn(Tensor<1>) -> Tensor<1>;
        const COUNT: u32 = 1 << 20;
        let device = crate::cpu();
        let functions: [(LipschitzActivation, Function); 4] = [
            (LipschitzActivation::TensorTanh, |x| x.tanh()),
            (LipschitzActivation::Sigmoid, activation::sigmoid),
            (LipschitzActivation::Silu, activation::silu),
            (LipschitzActivation::Gelu, activation::gelu),
        ];
        for (kind, function) in functions {
            for start in (0..=u32::MAX).step_by(COUNT as usize) {
                let numbers = (start..=start + (COUNT - 1)).map(f32::from_bits);
                let x: Vec<f32> = numbers.filter(|x| x.is_finite()).collect();
                if x.is_empty() {
                    continue;
                }
                let data = TensorData::new(x.clone(), [x.len()]);
                let y = function(Tensor::from_data(data, &device)).into_data();
                let y = y.try_into_vec::<f32>().expect("f32");
                for (x, y) in x.into_iter().zip(y) {
                    check(kind, f64::from(x), f64::from(y));
                }
            }
        }
    }

    /// A proof by trying: the kernel's tanh of every positive f32, against f64. It is odd by construction.
    #[test]
    #[ignore = "20 seconds: cargo test -p circulant --lib geometry -- --ignored every_f32_tanh"]
    fn every_f32_tanh() {
        let mut y = vec![0.0_f32; 1 << 16];
        let last = f32::INFINITY.to_bits();
        for start in (0..last).step_by(1 << 16) {
            let x: Vec<f32> = (start..start + (1 << 16))
                .map(|bits| f32::from_bits(bits.min(last)))
                .collect();
            circulant_kernels::tanh_into(&x, &mut y).expect("equal lengths");
            for (x, y) in x.iter().zip(&y) {
                let truth = f64::from(*x).tanh();
                let error = (f64::from(*y) - truth).abs();
                assert!(error <= TANH_ERROR * truth + UNDERFLOW, "{x}: {y}");
            }
        }
    }
}
