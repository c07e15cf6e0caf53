//! The operator with several channels: at every frequency `f` a complex matrix `K(f)` maps the input
//! channels to the output channels.
//!
//! Coordinates are `[coordinate, C_in, C_out]`, so `K(f)` is two contiguous planes of them (Re and
//! Im), read in place. The rows of the product are the packed pairs of images, once at `f` and,
//! conjugated, once at `-f`, because `Y(-f) = conj(K(f)) X(-f)` is `conj(Y(-f)) = K(f) conj(X(-f))`. So
//! one pass over the half plane serves the whole plane:
//!
//! | wanted | product | rows |
//! | --- | --- | --- |
//! | output | `Y = X K` | pairs x C_in x C_out |
//! | input gradient | `GX = W K^*` | pairs x C_out x C_in |
//! | gradient of K | `X^* W` summed over the pairs | C_in x pairs x C_out |
//!
//! `unsafe`: several threads read and write disjoint frequencies of shared blocks and disjoint
//! coordinates of the gradient.

use std::ptr::null_mut;

use rayon::prelude::*;

use crate::bins::Bin;
use crate::blocks::{Batch, Bias, BlockBias, Shared};
use crate::lane_fft::{InverseBlock, LanePlan};
use crate::product::{Ahead, ColumnMajor, RowMajor, product};
use crate::real::Real;
use crate::scratch::Scratch;
use crate::simd::{Isa, Kernel, RealSimd, Tile, Vector};

/// Frequencies that a task takes at a time.
const FREQUENCIES_PER_TASK: usize = 16;

/// A free bin with the positions of its frequency and of the opposite one.
#[derive(Debug, Clone, Copy)]
pub struct Frequency {
    pub(crate) coordinate: usize,
    pub(crate) position: usize,
    /// `None` for a self-conjugate bin, whose matrix is real.
    pub(crate) mirror: Option<usize>,
}

/// The free frequencies of a grid, and the positions that the mask leaves zero.
pub struct FrequencyTable {
    pub(crate) frequencies: Vec<Frequency>,
    pub(crate) masked: Vec<usize>,
}

impl FrequencyTable {
    /// From the full plane's bins in natural order and the order of the transform.
    pub(crate) fn new(height: usize, width: usize, full: &[Bin], order: &[Option<usize>]) -> Self {
        let mut position_of = vec![0; full.len()];
        for (position, frequency) in order.iter().enumerate() {
            if let Some(frequency) = *frequency {
                position_of[frequency] = position;
            }
        }
        let mut table = Self {
            frequencies: Vec::new(),
            masked: Vec::new(),
        };
        for (index, &bin) in full.iter().enumerate() {
            let position = position_of[index];
            let (u, v) = (index / width, index % width);
            let opposite = (height - u) % height * width + (width - v) % width;
            match bin {
                Bin::Real { coordinate } => {
                    table.frequencies.push(Frequency {
                        coordinate,
                        position,
                        mirror: None,
                    });
                }
                Bin::Complex { coordinate } => {
                    let mirror = Some(position_of[opposite]);
                    table.frequencies.push(Frequency {
                        coordinate,
                        position,
                        mirror,
                    });
                }
                Bin::Conjugate { .. } => {}
                Bin::Masked => table.masked.push(position),
            }
        }
        // In memory order, so that neighbours share pages.
        table
            .frequencies
            .sort_by_key(|frequency| frequency.position);
        table
    }
}

/// The operator for one filter.
pub struct Mixing<'a, T> {
    pub(crate) isa: Isa,
    pub(crate) plan: &'a LanePlan<T>,
    pub(crate) table: &'a FrequencyTable,
    pub(crate) inputs: Batch,
    pub(crate) outputs: Batch,
}

impl<T: Real> Mixing<'_, T> {
    fn for_each_task(&self, work: impl Fn(&[Frequency]) + Send + Sync) {
        self.table
            .frequencies
            .par_chunks(FREQUENCIES_PER_TASK)
            .for_each(work);
    }

    /// `y = act(K x + bias)` from the kept spectrum of `x`.
    pub(crate) fn forward(
        &self,
        kept: &[T],
        coordinates: &[T],
        bias: Bias<'_, T>,
        tanh: bool,
        y: &mut [T],
    ) {
        let mut spectrum = self.spectrum(&self.outputs, &self.table.masked);
        let (kept, out) = (Shared::reader(kept), Shared::writer(&mut spectrum));
        self.for_each_task(|frequencies| {
            T::mix(
                self.isa,
                Mix {
                    mixing: self,
                    frequencies,
                    coordinates,
                    from: kept,
                    to: out,
                    adjoint: false,
                    add: false,
                },
            );
        });
        self.inverse(&self.outputs, &mut spectrum, bias, tanh, y);
    }

    /// Writes the gradient of the coordinates, and adds the spectrum of the input gradient to
    /// `grad_spectrum` (or sets it, for the first filter).
    pub(crate) fn backward(
        &self,
        kept: &[T],
        gradient: &[T],
        coordinates: &[T],
        grad_coordinates: Option<&mut [T]>,
        grad_spectrum: Option<(&mut [T], bool)>,
    ) {
        let (kept, gradient) = (Shared::reader(kept), Shared::reader(gradient));
        let grad_coordinates = grad_coordinates.map(Shared::writer);
        let grad_spectrum = grad_spectrum.map(|(to, add)| (Shared::writer(to), add));
        self.for_each_task(|frequencies| {
            if let Some(out) = grad_coordinates {
                T::correlate(
                    self.isa,
                    Correlate {
                        mixing: self,
                        frequencies,
                        x: kept,
                        gradient,
                        out,
                    },
                );
            }
            if let Some((to, add)) = grad_spectrum {
                T::mix(
                    self.isa,
                    Mix {
                        mixing: self,
                        frequencies,
                        coordinates,
                        from: gradient,
                        to,
                        adjoint: true,
                        add,
                    },
                );
            }
        });
    }

    /// Both planes of the next frequency's matrix among `coordinates`.
    #[inline(always)]
    fn matrix_ahead(&self, next: Option<&Frequency>, coordinates: *const T) -> Ahead<T> {
        let plane = self.inputs.channels * self.outputs.channels;
        Ahead {
            start: coordinates.wrapping_add(next.map_or(0, |next| next.coordinate * plane)),
            len: if next.is_some() { 2 * plane } else { 0 },
        }
    }

    /// Room for a spectrum, with zeros where the mask wants them.
    pub(crate) fn spectrum(&self, batch: &Batch, masked: &[usize]) -> Scratch<T> {
        let mut spectrum = Scratch::take(batch.blocks() * batch.block_stride());
        for block in spectrum.chunks_exact_mut(batch.block_stride()) {
            for position in masked {
                block[position * 2 * batch.lanes..][..2 * batch.lanes].fill(T::zero());
            }
        }
        spectrum
    }

    /// Spectra back to rows.
    pub(crate) fn inverse(
        &self,
        batch: &Batch,
        spectrum: &mut [T],
        bias: Bias<'_, T>,
        tanh: bool,
        rows: &mut [T],
    ) {
        let (spectrum, rows) = (Shared::writer(spectrum), Shared::writer(rows));
        batch.map_tasks(|blocks| {
            for block in blocks {
                T::inverse_block(
                    self.isa,
                    InverseBlock {
                        plan: self.plan,
                        product: None,
                        block: spectrum.at(block * batch.block_stride()),
                        rows: &batch.pointers(rows, block, null_mut()),
                        bias: BlockBias::new(bias, batch, block).lane_bias(),
                        tanh,
                    },
                );
            }
        });
    }

    /// The sum of the output gradient over pixels and images, per channel.
    pub(crate) fn channel_sums(&self, gradient: &[T], out: &mut [T]) {
        out.fill(T::zero());
        let batch = &self.outputs;
        for r in 0..batch.lanes_used() {
            // Position 0 is frequency 0; lane r holds two images.
            let at = r / batch.lanes * batch.block_stride() + r % batch.lanes;
            let slot = &mut out[r % batch.channels];
            *slot = *slot + gradient[at] + gradient[at + batch.lanes];
        }
    }
}

/// Split planes of complex numbers in one allocation.
struct Planes<T: Real> {
    memory: Scratch<T>,
    plane: usize,
}

impl<T: Real> Planes<T> {
    /// Two planes of `len` numbers, with room for a vector to overrun.
    fn new(len: usize) -> Self {
        let plane = len + 16;
        Self {
            memory: Scratch::zeroed(2 * plane),
            plane,
        }
    }

    fn re(&mut self) -> *mut T {
        self.memory.as_mut_ptr()
    }

    fn im(&mut self) -> *mut T {
        self.memory[self.plane..].as_mut_ptr()
    }

    /// The first `len` numbers of both.
    fn planes(&self, len: usize) -> (&[T], &[T]) {
        (&self.memory[..len], &self.memory[self.plane..][..len])
    }

    fn row_major(&mut self, row: usize) -> RowMajor<T> {
        RowMajor {
            re: self.re(),
            im: self.im(),
            row,
        }
    }
}

/// Copies frequency `f` of all lanes to the planes, then `-f` conjugated behind it; with
/// `conjugate` it is the other way round. All is multiplied by `scale`. The next frequency is fetched meanwhile: its entries are
/// one cache line each, far apart.
#[inline(always)]
unsafe fn gather<V: Vector>(
    batch: &Batch,
    spectrum: Shared<V::Scalar>,
    frequency: &Frequency,
    next: Option<&Frequency>,
    conjugate: bool,
    scale: V::Scalar,
    planes: &mut Planes<V::Scalar>,
) {
    let (re, im) = (planes.re(), planes.im());
    let positions = [
        (Some(frequency.position), conjugate, 0),
        (frequency.mirror, !conjugate, batch.lanes_used()),
    ];
    let next = next.map_or([None; 2], |next| [Some(next.position), next.mirror]);
    for ((position, conjugate, start), next) in positions.into_iter().zip(next) {
        let Some(position) = position else { continue };
        for block in 0..batch.blocks() {
            if let Some(next) = next {
                V::Scalar::prefetch(
                    spectrum.at(block * batch.block_stride() + next * 2 * V::LANES),
                );
            }
            let from = spectrum.at(block * batch.block_stride() + position * 2 * V::LANES);
            let to = start + block * V::LANES;
            // SAFETY: the block holds the entry; the planes hold both copies and an overrun.
            unsafe {
                let sign = if conjugate { -scale } else { scale };
                V::load(from).mul(V::splat(scale)).store(re.add(to));
                V::load(from.add(V::LANES))
                    .mul(V::splat(sign))
                    .store(im.add(to));
            }
        }
    }
}

/// The way back of [`gather`], times `scale`.
#[inline(always)]
unsafe fn scatter<V: Vector>(
    batch: &Batch,
    spectrum: Shared<V::Scalar>,
    frequency: &Frequency,
    scale: V::Scalar,
    add: bool,
    planes: &mut Planes<V::Scalar>,
) {
    let (re, im) = (planes.re(), planes.im());
    let positions = [
        (Some(frequency.position), false, 0),
        (frequency.mirror, true, batch.lanes_used()),
    ];
    for (position, conjugate, start) in positions {
        let Some(position) = position else { continue };
        for block in 0..batch.blocks() {
            let to = spectrum.at(block * batch.block_stride() + position * 2 * V::LANES);
            let from = start + block * V::LANES;
            // SAFETY: as in `gather`.
            unsafe {
                let mut real = V::load(re.add(from)).mul(V::splat(scale));
                let sign = if conjugate { -scale } else { scale };
                let mut imaginary = V::load(im.add(from)).mul(V::splat(sign));
                if add {
                    real = real.add(V::load(to));
                    imaginary = imaginary.add(V::load(to.add(V::LANES)));
                }
                real.store(to);
                imaginary.store(to.add(V::LANES));
            }
        }
    }
}

/// `to = from K`, or `from K^*` for the adjoint, at some frequencies.
pub struct Mix<'a, T> {
    mixing: &'a Mixing<'a, T>,
    frequencies: &'a [Frequency],
    coordinates: &'a [T],
    from: Shared<T>,
    to: Shared<T>,
    adjoint: bool,
    add: bool,
}

impl<T: Real> Kernel<T> for Mix<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let (inputs, outputs) = (&self.mixing.inputs, &self.mixing.outputs);
        let (from, to) = if self.adjoint {
            (outputs, inputs)
        } else {
            (inputs, outputs)
        };
        let padded = to.channels.next_multiple_of(V::LANES);
        let pairs = from.batch.div_ceil(2);
        let scale = T::one() / T::of(self.mixing.plan.len() as f64);
        let mut weights = Planes::new(from.channels * padded);
        let mut sources = Planes::new(2 * from.lanes_used());
        let mut turned = Planes::new(2 * from.lanes_used());
        let mut products = Planes::new(2 * pairs * padded);
        for (index, frequency) in self.frequencies.iter().enumerate() {
            let next = self.frequencies.get(index + 1);
            let rows = pairs * (1 + usize::from(frequency.mirror.is_some()));
            // SAFETY: frequencies belong to one task each; the planes have the sizes of the
            // product below.
            unsafe {
                let matrix = self.matrix::<V>(frequency, padded, &mut weights);
                gather::<V>(
                    from,
                    self.from,
                    frequency,
                    next,
                    false,
                    T::one(),
                    &mut sources,
                );
                let one = T::one();
                let (re, im) = sources.planes(rows * from.channels);
                transpose::<V>(re, rows, from.channels, rows, one, turned.re());
                transpose::<V>(im, rows, from.channels, rows, one, turned.im());
                product::<V>(
                    (rows, from.channels, to.channels),
                    ColumnMajor {
                        re: turned.re(),
                        im: turned.im(),
                        column: rows,
                    },
                    matrix,
                    products.row_major(padded),
                    self.mixing.matrix_ahead(next, self.coordinates.as_ptr()),
                );
            }
            if padded != to.channels {
                for plane in products.memory.chunks_exact_mut(products.plane) {
                    for row in 1..rows {
                        plane.copy_within(
                            row * padded..row * padded + to.channels,
                            row * to.channels,
                        );
                    }
                }
            }
            // SAFETY: as above.
            unsafe { scatter::<V>(to, self.to, frequency, scale, self.add, &mut products) };
        }
    }
}

impl<T: Real> Mix<'_, T> {
    /// `K(f)`, read in place where its rows are whole vectors, or its conjugate transpose, with
    /// rows padded to whole vectors.
    #[inline(always)]
    unsafe fn matrix<V: Vector<Scalar = T>>(
        &self,
        frequency: &Frequency,
        padded: usize,
        room: &mut Planes<T>,
    ) -> RowMajor<T> {
        let (inputs, outputs) = (self.mixing.inputs.channels, self.mixing.outputs.channels);
        let plane = inputs * outputs;
        let part =
            |part: usize| &self.coordinates[(frequency.coordinate + part) * plane..][..plane];
        let packed = room.row_major(padded);
        let in_place = !self.adjoint && padded == outputs;
        let mut matrix = packed;
        if in_place {
            matrix.re = part(0).as_ptr().cast_mut();
        } else {
            // SAFETY: the planes have a row of `padded` numbers for every source channel.
            unsafe { self.copy::<V>(part(0), padded, T::one(), packed.re) };
        }
        if frequency.mirror.is_none() {
            // SAFETY: the plane has this size.
            unsafe { packed.im.write_bytes(0, room.plane) };
        } else if in_place {
            matrix.im = part(1).as_ptr().cast_mut();
        } else {
            let sign = if self.adjoint { -T::one() } else { T::one() };
            // SAFETY: as above.
            unsafe { self.copy::<V>(part(1), padded, sign, packed.im) };
        }
        matrix
    }

    // A function and not a closure: it must be inlined, or it misses the instruction set.
    #[inline(always)]
    unsafe fn copy<V: Vector<Scalar = T>>(&self, from: &[T], padded: usize, sign: T, to: *mut T) {
        let (inputs, outputs) = (self.mixing.inputs.channels, self.mixing.outputs.channels);
        // SAFETY: the caller's promise.
        unsafe {
            if self.adjoint {
                transpose::<V>(from, inputs, outputs, padded, sign, to);
            } else {
                for (row, from) in from.chunks_exact(outputs).enumerate() {
                    to.add(row * padded)
                        .copy_from_nonoverlapping(from.as_ptr(), outputs);
                }
            }
        }
    }
}

/// `to = sign*from^T` for a `rows x columns` matrix, into rows `padded` apart.
#[inline(always)]
unsafe fn transpose<V: Vector>(
    from: &[V::Scalar],
    rows: usize,
    columns: usize,
    padded: usize,
    sign: V::Scalar,
    to: *mut V::Scalar,
) {
    let side = <V::Tile as Vector>::LANES;
    if rows.is_multiple_of(side) && columns.is_multiple_of(side) {
        let sign = <V::Tile as Vector>::splat(sign);
        for row in (0..rows).step_by(side) {
            for column in (0..columns).step_by(side) {
                // SAFETY: the tile lies inside both matrices.
                unsafe {
                    V::Tile::transpose(
                        #[inline(always)]
                        |i| {
                            V::Tile::load(from.as_ptr().add((row + i) * columns + column)).mul(sign)
                        },
                        #[inline(always)]
                        |j| to.add((column + j) * padded + row),
                    );
                }
            }
        }
    } else {
        for row in 0..rows {
            for column in 0..columns {
                // SAFETY: `row < padded`, and there is a row for every column.
                unsafe { *to.add(column * padded + row) = from[row * columns + column] * sign };
            }
        }
    }
}

/// `out(f) = X(f)^* W(f)` summed over the pairs, at some frequencies.
pub struct Correlate<'a, T> {
    mixing: &'a Mixing<'a, T>,
    frequencies: &'a [Frequency],
    x: Shared<T>,
    gradient: Shared<T>,
    out: Shared<T>,
}

impl<T: Real> Kernel<T> for Correlate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let (inputs, outputs) = (&self.mixing.inputs, &self.mixing.outputs);
        let padded = outputs.channels.next_multiple_of(V::LANES);
        let pairs = inputs.batch.div_ceil(2);
        let scale = T::one() / T::of(self.mixing.plan.len() as f64);
        let plane = inputs.channels * outputs.channels;
        let mut x = Planes::new(2 * inputs.lanes_used());
        let mut w = Planes::new(2 * outputs.lanes_used());
        let mut sums = Planes::new(inputs.channels * padded);
        for (index, frequency) in self.frequencies.iter().enumerate() {
            let next = self.frequencies.get(index + 1);
            let copies = 1 + usize::from(frequency.mirror.is_some());
            // SAFETY: frequencies belong to one task each; the planes have the sizes of the
            // product below, and `w` room for the last row's overrun.
            unsafe {
                gather::<V>(inputs, self.x, frequency, next, true, scale, &mut x);
                gather::<V>(
                    outputs,
                    self.gradient,
                    frequency,
                    next,
                    false,
                    T::one(),
                    &mut w,
                );
                let in_place = padded == outputs.channels && frequency.mirror.is_some();
                let to = |part: usize| self.out.at((frequency.coordinate + part) * plane);
                let target = if in_place {
                    RowMajor {
                        re: to(0),
                        im: to(1),
                        row: padded,
                    }
                } else {
                    sums.row_major(padded)
                };
                product::<V>(
                    (inputs.channels, pairs * copies, outputs.channels),
                    ColumnMajor {
                        re: x.re(),
                        im: x.im(),
                        column: inputs.channels,
                    },
                    w.row_major(outputs.channels),
                    target,
                    self.mixing.matrix_ahead(next, self.out.at(0)),
                );
                if !in_place {
                    // A self-conjugate bin has no imaginary coordinate.
                    for part in 0..copies {
                        for i in 0..inputs.channels {
                            let from = sums.memory[part * sums.plane + i * padded..].as_ptr();
                            let to = to(part).add(i * outputs.channels);
                            to.copy_from_nonoverlapping(from, outputs.channels);
                        }
                    }
                }
            }
        }
    }
}
