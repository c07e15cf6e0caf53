//! Times of the layers, f32, beside a dense `gemm` and what they cannot do without: "copying" moves the same rows through
//! the same memory without computing, "products" is one `gemm` with the floating-point operations of the channel mixing.
//!
//! `cargo bench -p circulant-kernels --bench layers` prints a table; `-- --json` prints one line per case. Flags:
//! `--case SUBSTRING`, `--seconds S` (per case), `--threads N`; `--export CASE FILE` writes the numbers of a case (f32:
//! inputs, coordinates, bias, output gradient, then outputs and gradients). The peers (PyTorch, JAX) are timed against
//! this program by `bench/peers/compare.py`.

#[path = "timing/memory.rs"]
mod memory;
mod timing;

use circulant_kernels::{Activation, CirculantPlan, Filters, Gradients, HalfPlane, HalfSpectrum};
use memory::{copy, noise};
use timing::{Report, Versions};

/// The numbers of one case and everything it writes to.
struct Work {
    plan: CirculantPlan<f32>,
    activation: Activation,
    x: Vec<f32>,
    coordinates: Vec<f32>,
    bias: Vec<f32>,
    grad_y: Vec<f32>,
    y: Vec<f32>,
    grad_x: Vec<f32>,
    grad_coordinates: Vec<f32>,
    grad_bias: Vec<f32>,
}

impl Work {
    fn new(plan: CirculantPlan<f32>, batch: usize, biases: usize) -> Self {
        let (x, y) = (batch * plan.input_len(), batch * plan.output_len());
        Self {
            activation: Activation::Identity,
            x: noise(1, x),
            coordinates: noise(2, plan.coordinates()),
            bias: noise(3, biases),
            grad_y: noise(4, y),
            y: vec![0.0; y],
            grad_x: vec![0.0; x],
            grad_coordinates: vec![0.0; plan.coordinates()],
            grad_bias: vec![0.0; biases],
            plan,
        }
    }

    fn run(&mut self, backward: bool) {
        let (plan, x, y) = (&self.plan, &self.x, &mut self.y);
        let filters = Filters {
            coordinates: &self.coordinates,
            bias: Some(&self.bias),
            activation: self.activation,
        };
        if !backward {
            return plan.forward(x, filters, y).expect("shapes fit");
        }
        let kept = plan.forward_keeping(x, filters, y).expect("shapes fit");
        let gradients = Gradients {
            x: Some(&mut self.grad_x),
            coordinates: Some(&mut self.grad_coordinates),
            bias: Some(&mut self.grad_bias),
        };
        plan.backward(&kept, filters, y, &self.grad_y, gradients)
            .expect("shapes fit");
    }

    /// Everything that goes in, then everything that comes out.
    fn export(&mut self, backward: bool, file: &str) {
        self.run(backward);
        let inputs = [&self.x, &self.coordinates, &self.bias, &self.grad_y];
        let mut parts = inputs.to_vec();
        parts.push(&self.y);
        if backward {
            parts.extend([&self.grad_x, &self.grad_coordinates, &self.grad_bias]);
        }
        let numbers = parts.into_iter().flatten();
        let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(file, bytes).expect("a file that can be written");
    }
}

/// `rows x inner` times `inner x columns`, as often as the layer needs: once forward, and twice more for the gradients.
fn dense([rows, inner, columns]: [usize; 3], backward: bool, threads: usize) -> Box<dyn FnMut()> {
    let (a, b) = (noise(5, rows * inner), noise(6, inner * columns));
    let mut c = vec![0.0_f32; rows * columns];
    let parallelism = if threads > 1 {
        gemm::Parallelism::Rayon(threads)
    } else {
        gemm::Parallelism::None
    };
    Box::new(move || {
        for _ in 0..products(backward) {
            // SAFETY: the vectors have rows*inner, inner*columns and rows*columns values, row-major.
            unsafe {
                gemm::gemm(
                    rows,
                    columns,
                    inner,
                    c.as_mut_ptr(),
                    1,
                    columns as isize,
                    false,
                    a.as_ptr(),
                    1,
                    inner as isize,
                    b.as_ptr(),
                    1,
                    columns as isize,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    parallelism,
                );
            }
        }
    })
}

fn products(backward: bool) -> usize {
    if backward { 3 } else { 1 }
}

/// The way of the values through memory without the computation: input to output, with gradients also the spectrum that is
/// kept and both gradients; with `mixing` through the spectra of inputs and outputs too, because every frequency needs all
/// channels.
fn copying(work: &Work, backward: bool, mixing: bool) -> Box<dyn FnMut()> {
    let (x, grad_y, coordinates) = (work.x.clone(), work.y.clone(), work.coordinates.clone());
    let [mut spectrum_x, mut grad_x] = [x.clone(), x.clone()];
    let [mut spectrum_y, mut y] = [grad_y.clone(), grad_y.clone()];
    let mut gradient = coordinates.clone();
    Box::new(move || {
        if mixing {
            copy(&x, &mut spectrum_x);
            copy(&spectrum_x, &mut spectrum_y);
            copy(&spectrum_y, &mut y);
        } else {
            copy(&x, &mut y);
        }
        if backward && mixing {
            copy(&coordinates, &mut gradient);
            copy(&grad_y, &mut spectrum_y);
            copy(&spectrum_y, &mut spectrum_x);
            copy(&spectrum_x, &mut grad_x);
        } else if backward {
            copy(&grad_y, &mut spectrum_x);
            copy(&spectrum_x, &mut grad_x);
        }
    })
}

/// Times a layer, or exports its numbers; `others` are versions beside it.
fn case(
    report: &Report,
    name: &str,
    mut work: Work,
    backward: bool,
    flops: f64,
    others: impl FnOnce(&Work) -> Versions<'static>,
) {
    if let Some(file) = &report.options.export {
        return work.export(backward, file);
    }
    let others = others(&work);
    let mut versions: Versions<'_> = vec![("ours", Box::new(|| work.run(backward)))];
    versions.extend(others);
    report.line(name, versions, |best| flops / best / 1e6, None);
}

fn pass_name(backward: bool) -> &'static str {
    if backward {
        "forward_backward"
    } else {
        "forward"
    }
}

fn signals(report: &Report, rows: usize, length: usize, backward: bool, tanh: bool) {
    let tanh_name = if tanh { "_tanh" } else { "" };
    let name = format!(
        "circulant1d/{rows}x{length}/{}{tanh_name}",
        pass_name(backward)
    );
    if !report.wants(&name) {
        return;
    }
    let layout = HalfSpectrum::new(length).expect("valid");
    let mut work = Work::new(CirculantPlan::new_1d(&layout), rows, 1);
    if tanh {
        work.activation = Activation::Tanh;
    }
    let transforms = if backward { 4.0 } else { 2.0 };
    let flops = transforms * 2.5 * length as f64 * (length as f64).log2() * rows as f64;
    case(report, &name, work, backward, flops, |work| {
        let mut others: Versions<'_> = vec![("copying", copying(work, backward, false))];
        if length <= 2048 {
            let gemm = dense([rows, length, length], backward, report.options.threads);
            others.push(("dense gemm", gemm));
        }
        others
    });
}

/// A block-circulant layer beside the dense one of its sizes.
fn blocks(report: &Report, batch: usize, d_in: usize, d_out: usize, block: usize, backward: bool) {
    let name = format!(
        "block/{batch}x{d_in}-{d_out}b{block}/{}",
        pass_name(backward)
    );
    if !report.wants(&name) {
        return;
    }
    let layout = HalfPlane::new(1, block).expect("valid");
    let plan = CirculantPlan::new_2d(&layout, d_in / block, d_out / block).expect("valid");
    let mixing = products(backward) as f64 * 4.0 * (batch * d_in * d_out / block) as f64;
    let work = Work::new(plan, batch, d_out / block);
    case(report, &name, work, backward, mixing, |work| {
        let gemm = dense([batch, d_in, d_out], backward, report.options.threads);
        let copying = copying(work, backward, false);
        vec![("dense gemm", gemm), ("copying", copying)]
    });
}

fn images(report: &Report, batch: usize, channels: usize, side: usize, backward: bool) {
    let pass = pass_name(backward);
    let name = format!("bccb2d/{batch}x{channels}-{channels}x{side}x{side}/{pass}");
    if !report.wants(&name) {
        return;
    }
    let layout = HalfPlane::new(side, side).expect("valid");
    let plan = CirculantPlan::new_2d(&layout, channels, channels).expect("valid");
    let pixels = (side * side) as f64;
    let passes = if backward { 4.0 } else { 2.0 };
    let transforms = passes * (channels * batch) as f64 * 2.5 * pixels * pixels.log2();
    let mixing = products(backward) as f64 * 4.0 * (batch * channels * channels) as f64 * pixels;
    let work = Work::new(plan, batch, channels);
    case(report, &name, work, backward, transforms + mixing, |work| {
        let mut others: Versions<'_> = vec![("copying", copying(work, backward, true))];
        if channels > 1 {
            // Half of the frequencies, complex, by three real products.
            let sizes = [batch * side * side * 3 / 2, channels, channels];
            let gemm = dense(sizes, backward, report.options.threads);
            others.push(("products", gemm));
        }
        others
    });
}

fn main() {
    let report = Report::start("GFLOP/s");
    for (rows, length) in [(512, 784), (8320, 128), (512, 2048), (64, 16384)] {
        signals(&report, rows, length, true, false);
    }
    for (rows, length) in [(512, 784), (8320, 128), (512, 2048), (64, 16384), (1, 784)] {
        signals(&report, rows, length, false, false);
    }
    signals(&report, 512, 784, true, true);
    for (batch, channels, side) in [(512, 1, 28), (64, 16, 32), (32, 64, 32)] {
        images(&report, batch, channels, side, true);
        images(&report, batch, channels, side, false);
    }
    for (batch, d_in, d_out, block) in [
        (8320, 128, 512, 2),
        (8320, 128, 512, 4),
        (8320, 128, 512, 8),
        (8320, 128, 512, 16),
        (8320, 128, 512, 32),
        (8320, 512, 128, 8),
        (8320, 512, 128, 16),
        (8320, 512, 128, 32),
        (512, 2048, 512, 64),
        (32, 4096, 4096, 64),
        (32, 4096, 4096, 512),
    ] {
        blocks(&report, batch, d_in, d_out, block, true);
        blocks(&report, batch, d_in, d_out, block, false);
    }
    // From which length on the dense product is slower.
    for length in [16, 32, 48, 64, 96, 128, 256] {
        signals(&report, 4096, length, false, false);
    }
}
