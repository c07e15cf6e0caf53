//! Times of the layers, f32, beside a plain realfft-per-row version and a dense `gemm`.
//!
//! `cargo bench -p circulant-kernels` prints a table; `-- --json` prints one line per case.
//! Flags: `--case SUBSTRING`, `--seconds S` (per case), `--threads N`. The peers (PyTorch, JAX) are
//! timed against this program by `bench/peers/compare.py`.

mod timing;

use std::sync::Arc;

use circulant_kernels::{
    Activation, CirculantPlan, Complex, Filters, Gradients, HalfPlane, HalfSpectrum,
};
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use timing::{Options, Time, time};

fn noise(len: usize, scale: f32) -> Vec<f32> {
    let mut generator = rand::rngs::StdRng::seed_from_u64(len as u64);
    (0..len)
        .map(|_| generator.random_range(-scale..scale))
        .collect()
}

/// The numbers of one case and everything it writes to.
struct Work {
    plan: CirculantPlan<f32>,
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
    fn new(plan: CirculantPlan<f32>, batch: usize, channels_out: usize) -> Self {
        let (x, y) = (batch * plan.input_len(), batch * plan.output_len());
        Self {
            x: noise(x, 1.0),
            coordinates: noise(plan.coordinates(), 1.0),
            bias: noise(channels_out, 1.0),
            grad_y: noise(y, 1.0),
            y: vec![0.0; y],
            grad_x: vec![0.0; x],
            grad_coordinates: vec![0.0; plan.coordinates()],
            grad_bias: vec![0.0; channels_out],
            plan,
        }
    }

    fn forward(&mut self) {
        let filters = Filters {
            coordinates: &self.coordinates,
            bias: Some(&self.bias),
            activation: Activation::Identity,
        };
        self.plan
            .forward(&self.x, filters, &mut self.y)
            .expect("shapes fit");
    }

    fn forward_backward(&mut self, activation: Activation) {
        let filters = Filters {
            coordinates: &self.coordinates,
            bias: Some(&self.bias),
            activation,
        };
        let kept = self
            .plan
            .forward_keeping(&self.x, filters, &mut self.y)
            .expect("shapes fit");
        let gradients = Gradients {
            x: Some(&mut self.grad_x),
            coordinates: Some(&mut self.grad_coordinates),
            bias: Some(&mut self.grad_bias),
        };
        self.plan
            .backward(&kept, filters, &self.y, &self.grad_y, gradients)
            .expect("shapes fit");
    }
}

/// The same work by realfft alone, one row at a time on all threads: what one gets from the library
/// without lanes.
struct Plain {
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
    h: Vec<Complex<f32>>,
    kept: Vec<Complex<f32>>,
    x: Vec<f32>,
    y: Vec<f32>,
    grad_x: Vec<f32>,
}

impl Plain {
    fn new(length: usize, x: &[f32]) -> Self {
        let mut planner = RealFftPlanner::<f32>::new();
        let bins = length / 2 + 1;
        Self {
            forward: planner.plan_fft_forward(length),
            inverse: planner.plan_fft_inverse(length),
            h: vec![Complex::new(1.0 / length as f32, 0.0); bins],
            kept: vec![Complex::new(0.0, 0.0); x.len() / length * bins],
            x: x.to_vec(),
            y: x.to_vec(),
            grad_x: x.to_vec(),
        }
    }

    /// `out = IRFFT(h RFFT(row))`; `between` sees the spectrum.
    fn pass(
        &self,
        scratch: &mut (Vec<f32>, Vec<Complex<f32>>, Vec<Complex<f32>>),
        row: &[f32],
        out: &mut [f32],
        between: impl FnOnce(&[Complex<f32>]),
    ) {
        let (input, bins, work) = scratch;
        input.copy_from_slice(row);
        self.forward
            .process_with_scratch(input, bins, work)
            .expect("lengths fit");
        between(bins);
        bins.iter_mut().zip(&self.h).for_each(|(x, h)| *x *= h);
        self.inverse
            .process_with_scratch(bins, out, work)
            .expect("the ends are real");
    }

    fn scratch(&self) -> (Vec<f32>, Vec<Complex<f32>>, Vec<Complex<f32>>) {
        let work = self
            .forward
            .get_scratch_len()
            .max(self.inverse.get_scratch_len());
        let zero = Complex::new(0.0, 0.0);
        (
            self.forward.make_input_vec(),
            self.forward.make_output_vec(),
            vec![zero; work],
        )
    }

    fn run(&mut self, backward: bool) {
        let (length, bins) = (self.forward.len(), self.h.len());
        let (mut y, mut kept) = (std::mem::take(&mut self.y), std::mem::take(&mut self.kept));
        y.par_chunks_mut(length)
            .zip(kept.par_chunks_mut(bins))
            .zip(self.x.par_chunks(length))
            .with_min_len(8)
            .for_each_init(
                || self.scratch(),
                |scratch, ((y, kept), x)| {
                    self.pass(scratch, x, y, |bins| {
                        if backward {
                            kept.copy_from_slice(bins)
                        }
                    })
                },
            );
        if backward {
            let mut grad_x = std::mem::take(&mut self.grad_x);
            let sums = grad_x
                .par_chunks_mut(length)
                .zip(kept.par_chunks(bins))
                .zip(y.par_chunks(length))
                .with_min_len(8)
                .fold(
                    || (self.scratch(), vec![Complex::new(0.0, 0.0); bins]),
                    |(mut scratch, mut sums), ((grad_x, kept), g)| {
                        self.pass(&mut scratch, g, grad_x, |bins| {
                            for ((sum, x), g) in sums.iter_mut().zip(kept).zip(bins) {
                                *sum += x.conj() * g;
                            }
                        });
                        (scratch, sums)
                    },
                )
                .map(|(_, sums)| sums)
                .reduce_with(|mut a, b| {
                    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                    a
                });
            std::hint::black_box(sums);
            self.grad_x = grad_x;
        }
        (self.y, self.kept) = (y, kept);
    }
}

/// `rows x length` times `length x length`, as often as the layer needs: once forward, and twice more
/// for the gradients of input and matrix.
fn dense(
    rows: usize,
    length: usize,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    products: usize,
    threads: usize,
) {
    let parallelism = if threads > 1 {
        gemm::Parallelism::Rayon(threads)
    } else {
        gemm::Parallelism::None
    };
    for _ in 0..products {
        // SAFETY: the slices have rows*length, length*length and rows*length numbers, row-major.
        unsafe {
            gemm::gemm(
                rows,
                length,
                length,
                c.as_mut_ptr(),
                1,
                length as isize,
                false,
                a.as_ptr(),
                1,
                length as isize,
                b.as_ptr(),
                1,
                length as isize,
                0.0,
                1.0,
                false,
                false,
                false,
                parallelism,
            );
        }
    }
}

struct Report<'a> {
    options: &'a Options,
    crossover: Option<usize>,
}

impl Report<'_> {
    fn wants(&self, case: &str) -> bool {
        case.contains(&self.options.case)
    }

    fn line(&self, case: &str, times: &[Time], flops: f64) {
        let ours = times[0];
        if self.options.json {
            self.options.print_json(case, ours, None);
            return;
        }
        let other = |i: usize| {
            times.get(i).map_or("-".into(), |t| {
                format!("{:.3} ({:.1}x)", t.best, t.best / ours.best)
            })
        };
        println!(
            "{case:<42} {:>9.4} {:>9.4} {:>8.1} {:>20} {:>20}",
            ours.best,
            ours.median,
            flops / ours.best / 1e6,
            other(1),
            other(2)
        );
    }

    fn signals(&mut self, rows: usize, length: usize, backward: bool, tanh: bool) {
        let kind = match (backward, tanh) {
            (false, _) => "forward",
            (true, false) => "forward_backward",
            (true, true) => "forward_backward_tanh",
        };
        let case = format!("circulant1d/{rows}x{length}/{kind}");
        if !self.wants(&case) {
            return;
        }
        let layout = HalfSpectrum::new(length).expect("valid");
        let mut work = Work::new(CirculantPlan::new_1d(&layout), rows, 1);
        let mut plain = Plain::new(length, &work.x);
        let matrix = if length <= 2048 {
            noise(length * length, 0.1)
        } else {
            Vec::new()
        };
        let (a, mut c) = (work.x.clone(), work.x.clone());
        let activation = if tanh {
            Activation::Tanh
        } else {
            Activation::Identity
        };
        let mut versions: Vec<Box<dyn FnMut()>> = vec![Box::new(|| {
            if backward {
                work.forward_backward(activation)
            } else {
                work.forward()
            }
        })];
        if !self.options.json {
            versions.push(Box::new(|| plain.run(backward)));
            if !matrix.is_empty() {
                let products = if backward { 3 } else { 1 };
                let threads = self.options.threads;
                versions.push(Box::new(move || {
                    dense(rows, length, &a, &matrix, &mut c, products, threads)
                }));
            }
        }
        let times = time(self.options.seconds, &mut versions);
        drop(versions);
        let transforms = if backward { 4.0 } else { 2.0 };
        let flops = transforms * 2.5 * length as f64 * (length as f64).log2() * rows as f64;
        self.line(&case, &times, flops);
        if times.len() == 3 && times[2].best > times[0].best {
            self.crossover = Some(self.crossover.map_or(length, |d| d.min(length)));
        }
    }

    fn images(&self, batch: usize, inputs: usize, outputs: usize, side: usize, backward: bool) {
        let name = if backward {
            "forward_backward"
        } else {
            "forward"
        };
        let case = format!("bccb2d/{batch}x{inputs}-{outputs}x{side}x{side}/{name}");
        if !self.wants(&case) {
            return;
        }
        let layout = HalfPlane::new(side, side).expect("valid");
        let plan = CirculantPlan::new_2d(&layout, inputs, outputs).expect("valid");
        let mut work = Work::new(plan, batch, outputs);
        let mut versions: Vec<Box<dyn FnMut()>> = vec![Box::new(|| {
            if backward {
                work.forward_backward(Activation::Identity)
            } else {
                work.forward()
            }
        })];
        let times = time(self.options.seconds, &mut versions);
        let (passes, products) = if backward { (2.0, 3.0) } else { (1.0, 1.0) };
        let pixels = (side * side) as f64;
        let transforms =
            passes * (inputs + outputs) as f64 * batch as f64 * 2.5 * pixels * pixels.log2();
        let mixing = products * 4.0 * (batch * inputs * outputs) as f64 * pixels;
        self.line(&case, &times, transforms + mixing);
    }
}

fn main() {
    let options = Options::start();
    if !options.json {
        println!(
            "f32, {} threads, milliseconds; a factor above 1 means that ours is faster",
            options.threads
        );
        println!(
            "{:<42} {:>9} {:>9} {:>8} {:>20} {:>20}",
            "case", "best", "median", "GFLOP/s", "realfft per row", "dense gemm"
        );
    }
    let mut report = Report {
        options: &options,
        crossover: None,
    };
    for (rows, length) in [(512, 784), (8320, 128), (512, 2048), (64, 16384)] {
        report.signals(rows, length, true, false);
    }
    for (rows, length) in [(512, 784), (8320, 128), (512, 2048), (64, 16384), (1, 784)] {
        report.signals(rows, length, false, false);
    }
    report.signals(512, 784, true, true);
    for (batch, channels, side) in [(512, 1, 28), (64, 16, 32), (32, 64, 32)] {
        report.images(batch, channels, channels, side, true);
        report.images(batch, channels, channels, side, false);
    }
    if options.json && options.case.is_empty() {
        return;
    }
    for length in [16, 32, 48, 64, 96, 128, 256] {
        report.signals(4096, length, false, false);
    }
    if let Some(length) = report.crossover
        && !options.json
    {
        println!("circulant beats the dense product from d = {length} on, among the lengths above");
    }
}
