//! Layer normalisation behind a residual addition and a plain version of it.

use circulant_kernels::{
    LayerNorm, LayerNormGradients, RowStatistics, layer_norm_backward, residual_layer_norm_into,
};

use crate::beside_plain::{Report, noise};
use crate::{ROWS, WIDTH};

/// A residual addition and the normalisation behind it, with everything that is written.
struct Norm {
    x: Vec<f32>,
    addend: Vec<f32>,
    gamma: Vec<f32>,
    beta: Vec<f32>,
    grad: Vec<f32>,
    sum: Vec<f32>,
    y: Vec<f32>,
    mean: Vec<f32>,
    inverse_deviation: Vec<f32>,
    dx: Vec<f32>,
    dgamma: Vec<f32>,
    dbeta: Vec<f32>,
}

impl Norm {
    fn new() -> Self {
        let mut norm = Self {
            x: noise(0, ROWS * WIDTH),
            addend: noise(1, ROWS * WIDTH),
            gamma: noise(2, WIDTH),
            beta: noise(3, WIDTH),
            grad: noise(4, ROWS * WIDTH),
            sum: vec![0.0; ROWS * WIDTH],
            y: vec![0.0; ROWS * WIDTH],
            mean: vec![0.0; ROWS],
            inverse_deviation: vec![0.0; ROWS],
            dx: vec![0.0; ROWS * WIDTH],
            dgamma: vec![0.0; WIDTH],
            dbeta: vec![0.0; WIDTH],
        };
        norm.forward();
        norm
    }

    fn forward(&mut self) {
        let layer = LayerNorm {
            gamma: &self.gamma,
            beta: &self.beta,
            epsilon: 1e-5,
        };
        let statistics = RowStatistics {
            mean: &mut self.mean[..],
            inverse_deviation: &mut self.inverse_deviation,
        };
        let (sum, y) = (&mut self.sum, &mut self.y);
        residual_layer_norm_into(&self.x, &self.addend, sum, layer, y, statistics)
            .expect("sizes fit");
    }

    /// The gradient of the sum is also that of the way around the layer.
    fn backward(&mut self) {
        let statistics = RowStatistics {
            mean: &self.mean[..],
            inverse_deviation: &self.inverse_deviation,
        };
        let gradients = LayerNormGradients {
            x: &mut self.dx,
            gamma: &mut self.dgamma,
            beta: &mut self.dbeta,
        };
        let (grad, residual) = (&self.grad, Some(&self.addend[..]));
        layer_norm_backward(
            &self.sum,
            &self.gamma,
            statistics,
            grad,
            residual,
            gradients,
        )
        .expect("sizes fit");
    }

    fn plain_forward(&mut self) {
        for row in 0..ROWS {
            let own = row * WIDTH..(row + 1) * WIDTH;
            let sum = &mut self.sum[own.clone()];
            for (sum, i) in sum.iter_mut().zip(own.clone()) {
                *sum = self.x[i] + self.addend[i];
            }
            let mean = sum.iter().sum::<f32>() / WIDTH as f32;
            let variance = sum.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / WIDTH as f32;
            let inverse = 1.0 / (variance + 1e-5).sqrt();
            (self.mean[row], self.inverse_deviation[row]) = (mean, inverse);
            for (j, (y, x)) in self.y[own].iter_mut().zip(sum).enumerate() {
                *y = (*x - mean) * inverse * self.gamma[j] + self.beta[j];
            }
        }
    }

    fn plain_backward(&mut self) {
        self.dgamma.fill(0.0);
        self.dbeta.fill(0.0);
        for row in 0..ROWS {
            let (mean, inverse) = (self.mean[row], self.inverse_deviation[row]);
            let (mut plain, mut weighted) = (0.0, 0.0);
            for j in 0..WIDTH {
                let g = self.grad[row * WIDTH + j];
                let h = (self.sum[row * WIDTH + j] - mean) * inverse;
                self.dgamma[j] += g * h;
                self.dbeta[j] += g;
                plain += g * self.gamma[j] / WIDTH as f32;
                weighted += g * self.gamma[j] * h / WIDTH as f32;
            }
            for j in 0..WIDTH {
                let i = row * WIDTH + j;
                let h = (self.sum[i] - mean) * inverse;
                let inner = self.grad[i] * self.gamma[j] - plain - h * weighted;
                self.dx[i] = inner * inverse + self.addend[i];
            }
        }
    }
}

/// Forward and backward.
pub fn layer_norm(report: &Report) {
    let (mut ours, mut plain) = (Norm::new(), Norm::new());
    let name = "residual_layer_norm/8320x128";
    report.case(
        &format!("{name}/forward"),
        || ours.forward(),
        || plain.plain_forward(),
    );
    report.case(
        &format!("{name}/backward"),
        || ours.backward(),
        || plain.plain_backward(),
    );
}
