//! One group of rows through the matrices of their frequencies, and the gradient of the matrices.
//!
//! Lanes hold pairs of rows, and a number of a matrix is broadcast. The frequencies `f` and `-f` have conjugate
//! matrices and share each broadcast: with the tile of a 512-bit register file, a step of the inner sum is 32 fused
//! multiply-adds for four loads and eight broadcasts.
//!
//! `unsafe`: see the module above.

use crate::operator::channels::Frequency;
use crate::real::Real;
use crate::transform::butterfly::Complexes;
use crate::vector::{Kernel, Present, Promised, Tile, Vector};

/// The spectra of one group: channel `c` is `stride` values behind channel 0.
#[derive(Clone, Copy)]
pub struct GroupSpectra<T> {
    pub(super) at: *mut T,
    pub(super) stride: usize,
}

impl<T> GroupSpectra<T> {
    #[inline(always)]
    fn entry(&self, channel: usize, position: usize, lanes: usize) -> *mut T {
        self.at
            .wrapping_add(channel * self.stride + position * 2 * lanes)
    }
}

/// `to = scale * from K` at some frequencies, or `from K^*` for the adjoint.
pub struct GroupProduct<'a, T> {
    pub(super) frequencies: &'a [Frequency],
    pub(super) from: GroupSpectra<T>,
    pub(super) to: GroupSpectra<T>,
    /// `[coordinate, C_in, C_out]`.
    pub(super) coordinates: *const T,
    pub(super) channels: (usize, usize),
    pub(super) adjoint: bool,
    /// Add to what is there.
    pub(super) add: bool,
    pub(super) scale: T,
}

/// A matrix as the inner loop walks it: `(inner, outer)` sizes and steps.
struct Walk<T> {
    re: *const T,
    im: *const T,
    inner: (usize, usize),
    outer: (usize, usize),
}

impl<T: Real> Kernel<T> for Promised<GroupProduct<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) {
        let job = self.job();
        let (inputs, outputs) = job.channels;
        let plane = inputs * outputs;
        for frequency in job.frequencies {
            let re = job.coordinates.wrapping_add(frequency.coordinate * plane);
            let mut walk = Walk {
                re,
                im: re.wrapping_add(plane),
                inner: (inputs, outputs),
                outer: (outputs, 1),
            };
            if job.adjoint {
                (walk.inner, walk.outer) = ((outputs, 1), (inputs, outputs));
            }
            there.call(
                #[inline(always)]
                || {
                    // SAFETY: see the head of the module.
                    unsafe {
                        match (frequency.mirror, job.adjoint) {
                            (None, _) => job.real::<V>(&walk, frequency.position),
                            (Some(mirror), false) => {
                                job.complex::<V>(&walk, (frequency.position, mirror));
                            }
                            // What multiplies with the conjugate at `f` multiplies with the matrix itself at `-f`.
                            (Some(mirror), true) => {
                                job.complex::<V>(&walk, (mirror, frequency.position));
                            }
                        }
                    }
                },
            );
        }
    }
}

impl<T: Real> GroupProduct<'_, T> {
    #[inline(always)]
    unsafe fn complex<V: Vector<Scalar = T>>(&self, walk: &Walk<T>, at: (usize, usize)) {
        let mut start = 0;
        // SAFETY: the caller's promise.
        unsafe {
            if V::LANES == 16 {
                while start + 4 <= walk.outer.0 {
                    self.complex_tile::<V, 4>(walk, at, start);
                    start += 4;
                }
            }
            while start + 2 <= walk.outer.0 {
                self.complex_tile::<V, 2>(walk, at, start);
                start += 2;
            }
            while start < walk.outer.0 {
                self.complex_tile::<V, 1>(walk, at, start);
                start += 1;
            }
        }
    }

    /// `N` channels of the result at `f` and `-f`.
    #[inline(always)]
    unsafe fn complex_tile<V: Vector<Scalar = T>, const N: usize>(
        &self,
        walk: &Walk<T>,
        (position, mirror): (usize, usize),
        start: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let zero = V::splat(T::zero());
            let zero = Complexes { re: zero, im: zero };
            let (mut here, mut there) = ([zero; N], [zero; N]);
            for inner in 0..walk.inner.0 {
                let x: Complexes<V> = Complexes::load(self.from.entry(inner, position, V::LANES));
                let m: Complexes<V> = Complexes::load(self.from.entry(inner, mirror, V::LANES));
                let at = inner * walk.inner.1 + start * walk.outer.1;
                for n in 0..N {
                    let re = V::splat(*walk.re.add(at + n * walk.outer.1));
                    let im = V::splat(*walk.im.add(at + n * walk.outer.1));
                    here[n].re = x.im.neg_mul_add(im, x.re.mul_add(re, here[n].re));
                    here[n].im = x.re.mul_add(im, x.im.mul_add(re, here[n].im));
                    there[n].re = m.im.mul_add(im, m.re.mul_add(re, there[n].re));
                    there[n].im = m.re.neg_mul_add(im, m.im.mul_add(re, there[n].im));
                }
            }
            for n in 0..N {
                self.finish(here[n], start + n, position);
                self.finish(there[n], start + n, mirror);
            }
        }
    }

    /// A self-conjugate bin, whose matrix is real.
    #[inline(always)]
    unsafe fn real<V: Vector<Scalar = T>>(&self, walk: &Walk<T>, position: usize) {
        let mut start = 0;
        // SAFETY: the caller's promise.
        unsafe {
            while start + 4 <= walk.outer.0 {
                self.real_tile::<V, 4>(walk, position, start);
                start += 4;
            }
            while start < walk.outer.0 {
                self.real_tile::<V, 1>(walk, position, start);
                start += 1;
            }
        }
    }

    #[inline(always)]
    unsafe fn real_tile<V: Vector<Scalar = T>, const N: usize>(
        &self,
        walk: &Walk<T>,
        position: usize,
        start: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let zero = V::splat(T::zero());
            let mut sums = [Complexes { re: zero, im: zero }; N];
            for inner in 0..walk.inner.0 {
                let x: Complexes<V> = Complexes::load(self.from.entry(inner, position, V::LANES));
                let at = inner * walk.inner.1 + start * walk.outer.1;
                for (n, sum) in sums.iter_mut().enumerate() {
                    let re = V::splat(*walk.re.add(at + n * walk.outer.1));
                    sum.re = x.re.mul_add(re, sum.re);
                    sum.im = x.im.mul_add(re, sum.im);
                }
            }
            for (n, sum) in sums.into_iter().enumerate() {
                self.finish(sum, start + n, position);
            }
        }
    }

    #[inline(always)]
    unsafe fn finish<V: Vector<Scalar = T>>(
        &self,
        sum: Complexes<V>,
        channel: usize,
        position: usize,
    ) {
        let to = self.to.entry(channel, position, V::LANES);
        let scale = sum.re.same(self.scale);
        let scaled = Complexes {
            re: sum.re.mul(scale),
            im: sum.im.mul(scale),
        };
        // SAFETY: the caller's promise.
        unsafe {
            if self.add {
                scaled.add(Complexes::load(to)).store(to);
            } else {
                scaled.store(to);
            }
        }
    }
}

/// `out += scale * X^* G` at some frequencies, summed over the lanes of several groups.
pub struct GroupCorrelation<'a, T> {
    pub(super) frequencies: &'a [Frequency],
    pub(super) groups: usize,
    /// The first group of either, and the values from one group to the next.
    pub(super) x: (GroupSpectra<T>, usize),
    pub(super) gradient: (GroupSpectra<T>, usize),
    /// `[coordinate, C_in, C_out]`.
    pub(super) out: *mut T,
    pub(super) channels: (usize, usize),
    pub(super) scale: T,
}

/// The most sums of a tile.
const MAX_SUMS: usize = 16;

impl<T: Real> Kernel<T> for Promised<GroupCorrelation<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) {
        let job = self.job();
        for frequency in job.frequencies {
            there.call(
                #[inline(always)]
                || {
                    // SAFETY: see the head of the module.
                    unsafe {
                        if V::LANES == 16 {
                            job.rows::<V, 4, 2>(frequency);
                        } else {
                            job.rows::<V, 2, 2>(frequency);
                        }
                    }
                },
            );
        }
    }
}

impl<T: Real> GroupCorrelation<'_, T> {
    /// All of one frequency in tiles of `R x C`, and what is left one by one.
    #[inline(always)]
    unsafe fn rows<V: Vector<Scalar = T>, const R: usize, const C: usize>(
        &self,
        frequency: &Frequency,
    ) {
        let (rows, columns) = self.channels;
        let (whole_rows, whole_columns) = (rows / R * R, columns / C * C);
        // SAFETY: the caller's promise.
        unsafe {
            for row in (0..whole_rows).step_by(R) {
                for column in (0..whole_columns).step_by(C) {
                    self.tile::<V, R, C>(frequency, row, column);
                }
                for column in whole_columns..columns {
                    self.tile::<V, R, 1>(frequency, row, column);
                }
            }
            for row in whole_rows..rows {
                for column in (0..whole_columns).step_by(C) {
                    self.tile::<V, 1, C>(frequency, row, column);
                }
                for column in whole_columns..columns {
                    self.tile::<V, 1, 1>(frequency, row, column);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn tile<V: Vector<Scalar = T>, const R: usize, const C: usize>(
        &self,
        frequency: &Frequency,
        row: usize,
        column: usize,
    ) {
        // SAFETY: the caller promises the memory and the instruction set.
        unsafe {
            let zero = V::splat(T::zero());
            let (mut re, mut im) = ([[zero; C]; R], [[zero; C]; R]);
            for group in 0..self.groups {
                let (x, g) = (group * self.x.1, group * self.gradient.1);
                let positions = [Some(frequency.position), frequency.mirror];
                for (mirrored, position) in positions.into_iter().enumerate() {
                    let Some(position) = position else { continue };
                    let mut gradient = [Complexes { re: zero, im: zero }; C];
                    for (c, gradient) in gradient.iter_mut().enumerate() {
                        let at = self.gradient.0.entry(column + c, position, V::LANES);
                        *gradient = Complexes::load(at.add(g));
                    }
                    for r in 0..R {
                        let at = self.x.0.entry(row + r, position, V::LANES);
                        let x: Complexes<V> = Complexes::load(at.add(x));
                        for c in 0..C {
                            let g = gradient[c];
                            re[r][c] = x.im.mul_add(g.im, x.re.mul_add(g.re, re[r][c]));
                            im[r][c] = if mirrored == 0 {
                                x.im.neg_mul_add(g.re, x.re.mul_add(g.im, im[r][c]))
                            } else {
                                x.re.neg_mul_add(g.im, x.im.mul_add(g.re, im[r][c]))
                            };
                        }
                    }
                }
            }
            let width = V::Tile::LANES;
            let parts = if frequency.mirror.is_some() { 2 } else { 1 };
            for (part, sums) in [re, im].into_iter().enumerate().take(parts) {
                let mut values = [T::zero(); MAX_SUMS];
                for first in (0..R * C).step_by(width) {
                    V::Tile::sums(
                        #[inline(always)]
                        |i| {
                            let i = first + i;
                            if i < R * C { sums[i / C][i % C] } else { zero }.folded()
                        },
                    )
                    .store(values.as_mut_ptr().add(first));
                }
                let plane = (frequency.coordinate + part) * self.channels.0;
                for r in 0..R {
                    let out = self.out.add((plane + row + r) * self.channels.1 + column);
                    for c in 0..C {
                        *out.add(c) = *out.add(c) + values[r * C + c] * self.scale;
                    }
                }
            }
        }
    }
}
