//! Times of the layers, f32, beside other ways to the same end (a plain realfft-per-row version, a dense `gemm`) and beside
//! what they cannot do without: "copying" moves the same rows through the same memory without computing, "products" is
//! one `gemm` with the floating-point operations of the channel mixing.
//!
//! `cargo bench -p circulant-kernels` prints a table; `-- --json` prints one line per case.
//! Flags: `--case SUBSTRING`, `--seconds S` (per case), `--threads N`; `--export CASE FILE` writes the numbers of a case (f32: inputs,
//! coordinates, bias, output gradient, then outputs and gradients). The peers (PyTorch, JAX) are
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

    fn run(&mut self, backward: bool, activation: Activation) {
        if backward {
            self.forward_backward(activation);
        } else {
            self.forward();
        }
    }

    /// Everything that goes in, then everything that comes out.
    fn export(&mut self, backward: bool, file: &str) {
        self.run(backward, Activation::Identity);
        let mut parts = vec![
            &self.x,
            &self.coordinates,
            &self.bias,
            &self.grad_y,
            &self.y,
        ];
        if backward {
            parts.extend([&self.grad_x, &self.grad_coordinates, &self.grad_bias]);
        }
        let numbers = parts.into_iter().flatten();
        let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(file, bytes).expect("a file that can be written");
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

/// `rows x inner` times `inner x columns`, as often as the layer needs: once forward, and twice more for the gradients.
fn dense(
    (rows, inner, columns): (usize, usize, usize),
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
        // SAFETY: the slices have rows*inner, inner*columns and rows*columns values, row-major.
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
}

/// The way of the values through memory without the computation.
struct Memory {
    inputs: [Vec<f32>; 3],
    outputs: [Vec<f32>; 3],
    coordinates: [Vec<f32>; 2],
}

impl Memory {
    fn new(inputs: usize, outputs: usize, coordinates: usize) -> Self {
        Self {
            inputs: [(); 3].map(|()| noise(inputs, 1.0)),
            outputs: [(); 3].map(|()| noise(outputs, 1.0)),
            coordinates: [(); 2].map(|()| noise(coordinates, 1.0)),
        }
    }

    /// Input to output; with gradients also the spectrum that is kept, and both gradients.
    fn signals(&mut self, backward: bool) {
        let [x, kept, grad_x] = &mut self.inputs;
        let [y, grad_y, _] = &mut self.outputs;
        copy(x, y);
        if backward {
            copy(grad_y, kept);
            copy(kept, grad_x);
        }
    }

    /// Through the spectra of inputs and outputs, because every frequency needs all channels.
    fn images(&mut self, backward: bool) {
        let [x, spectrum_x, grad_x] = &mut self.inputs;
        let [y, spectrum_y, grad_y] = &mut self.outputs;
        copy(x, spectrum_x);
        copy(spectrum_x, spectrum_y);
        copy(spectrum_y, y);
        let [coordinates, gradient] = &mut self.coordinates;
        if backward {
            copy(coordinates, gradient);
            copy(grad_y, spectrum_y);
            copy(spectrum_y, spectrum_x);
            copy(spectrum_x, grad_x);
        }
    }
}

/// As many values as both have, on all threads.
fn copy(from: &[f32], to: &mut [f32]) {
    const PART: usize = 1 << 14;
    to.par_chunks_mut(PART)
        .zip(from.par_chunks(PART))
        .for_each(|(to, from)| {
            let len = to.len().min(from.len());
            to[..len].copy_from_slice(&from[..len]);
        });
}

/// Ways to do the same, by name.
type Versions<'a> = Vec<(&'static str, Box<dyn FnMut() + 'a>)>;

struct Report<'a> {
    options: &'a Options,
    /// Where the numbers of one case go instead of its times.
    export: Option<String>,
    crossover: Option<usize>,
}

impl Report<'_> {
    fn wants(&self, case: &str) -> bool {
        match self.export {
            Some(_) => case == self.options.case,
            None => case.contains(&self.options.case),
        }
    }

    /// Times all versions, ours first, prints their line and returns their times.
    fn line(&self, case: &str, mut versions: Versions<'_>, flops: f64) -> Vec<Time> {
        if self.options.json {
            versions.truncate(1);
        }
        let (names, mut runs): (Vec<_>, Vec<_>) = versions.into_iter().unzip();
        let times = time(self.options.seconds, &mut runs);
        let ours = times[0];
        if self.options.json {
            self.options.print_json(case, ours, None);
            return times;
        }
        print!(
            "{case:<42} {:>9.4} {:>9.4} {:>8.1} ",
            ours.best,
            ours.median,
            flops / ours.best / 1e6,
        );
        for (name, time) in names.iter().zip(&times).skip(1) {
            print!(" {name} {:.3} ({:.1}x)", time.best, time.best / ours.best);
        }
        println!();
        times
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
        if let Some(file) = &self.export {
            return work.export(backward, file);
        }
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
        let mut memory = Memory::new(work.x.len(), work.y.len(), 0);
        let mut versions: Versions<'_> = vec![
            ("ours", Box::new(|| work.run(backward, activation))),
            ("realfft per row", Box::new(|| plain.run(backward))),
        ];
        if !matrix.is_empty() {
            let products = if backward { 3 } else { 1 };
            let threads = self.options.threads;
            let run = move || {
                dense(
                    (rows, length, length),
                    &a,
                    &matrix,
                    &mut c,
                    products,
                    threads,
                );
            };
            versions.push(("dense gemm", Box::new(run)));
        }
        versions.push(("copying", Box::new(move || memory.signals(backward))));
        let transforms = if backward { 4.0 } else { 2.0 };
        let flops = transforms * 2.5 * length as f64 * (length as f64).log2() * rows as f64;
        let times = self.line(&case, versions, flops);
        if times.len() == 4 && times[2].best > times[0].best {
            self.crossover = Some(self.crossover.map_or(length, |d| d.min(length)));
        }
    }

    /// A block-circulant layer beside the dense one of its sizes.
    fn blocks(&self, batch: usize, (d_in, d_out): (usize, usize), block: usize, backward: bool) {
        let name = pass_name(backward);
        let case = format!("block/{batch}x{d_in}-{d_out}b{block}/{name}");
        if !self.wants(&case) {
            return;
        }
        let layout = HalfPlane::new(1, block).expect("valid");
        let plan = CirculantPlan::new_2d(&layout, d_in / block, d_out / block).expect("valid");
        let mut work = Work::new(plan, batch, d_out);
        if let Some(file) = &self.export {
            return work.export(backward, file);
        }
        let mut memory = Memory::new(work.x.len(), work.y.len(), work.coordinates.len());
        let (a, b) = (noise(batch * d_in, 1.0), noise(d_in * d_out, 1.0));
        let (mut c, threads) = (vec![0.0; batch * d_out], self.options.threads);
        let products = if backward { 3 } else { 1 };
        let run = move || dense((batch, d_in, d_out), &a, &b, &mut c, products, threads);
        let versions: Versions<'_> = vec![
            (
                "ours",
                Box::new(|| work.run(backward, Activation::Identity)),
            ),
            ("dense gemm", Box::new(run)),
            ("copying", Box::new(move || memory.signals(backward))),
        ];
        let mixing = products as f64 * 4.0 * (batch * d_in * d_out / block) as f64;
        self.line(&case, versions, mixing);
    }

    fn images(&self, batch: usize, inputs: usize, outputs: usize, side: usize, backward: bool) {
        let name = pass_name(backward);
        let case = format!("bccb2d/{batch}x{inputs}-{outputs}x{side}x{side}/{name}");
        if !self.wants(&case) {
            return;
        }
        let layout = HalfPlane::new(side, side).expect("valid");
        let plan = CirculantPlan::new_2d(&layout, inputs, outputs).expect("valid");
        let mut work = Work::new(plan, batch, outputs);
        if let Some(file) = &self.export {
            return work.export(backward, file);
        }
        let mut memory = Memory::new(work.x.len(), work.y.len(), work.coordinates.len());
        let (passes, products) = if backward { (2.0, 3) } else { (1.0, 1) };
        let mut versions: Versions<'_> = vec![
            (
                "ours",
                Box::new(|| work.run(backward, Activation::Identity)),
            ),
            ("copying", Box::new(move || memory.images(backward))),
        ];
        if inputs * outputs > 1 {
            // Half of the frequencies, complex, by three real products.
            let rows = batch * side * side * 3 / 2;
            let (a, b) = (noise(rows * inputs, 1.0), noise(inputs * outputs, 1.0));
            let (mut c, threads) = (vec![0.0; rows * outputs], self.options.threads);
            let run = move || dense((rows, inputs, outputs), &a, &b, &mut c, products, threads);
            versions.push(("products", Box::new(run)));
        }
        let pixels = (side * side) as f64;
        let transforms =
            passes * (inputs + outputs) as f64 * batch as f64 * 2.5 * pixels * pixels.log2();
        let mixing = products as f64 * 4.0 * (batch * inputs * outputs) as f64 * pixels;
        self.line(&case, versions, transforms + mixing);
    }
}

fn pass_name(backward: bool) -> &'static str {
    if backward {
        "forward_backward"
    } else {
        "forward"
    }
}

/// Case and file of `--export CASE FILE`.
fn export_asked_for() -> Option<(String, String)> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--export");
    arguments.next()?;
    let expected = "--export needs a case and a file";
    let mut value = || arguments.next().expect(expected);
    Some((value(), value()))
}

fn main() {
    let (options, export) = match export_asked_for() {
        None => (Options::start(), None),
        Some((case, file)) => {
            let (seconds, threads) = (0.0, 0);
            let options = Options {
                json: true,
                case,
                seconds,
                threads,
            };
            (options, Some(file))
        }
    };
    if !options.json {
        println!(
            "f32, {} threads, milliseconds; a factor above 1 means that ours is faster",
            options.threads
        );
        println!(
            "{:<42} {:>9} {:>9} {:>8}  others, best",
            "case", "best", "median", "GFLOP/s"
        );
    }
    let mut report = Report {
        options: &options,
        export,
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
    let small = [8, 16, 32].map(|block| (8320, (128, 512), block));
    let back = small.map(|(rows, (a, b), block)| (rows, (b, a), block));
    let large = [
        (512, (2048, 512), 64),
        (32, (4096, 4096), 64),
        (32, (4096, 4096), 512),
    ];
    for (rows, sizes, block) in small.into_iter().chain(back).chain(large) {
        report.blocks(rows, sizes, block, true);
        report.blocks(rows, sizes, block, false);
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
