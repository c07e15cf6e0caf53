//! Matrices with orthonormal columns, one per frequency: what makes a layer of channels orthogonal.
//!
//! A free complex bin of `C_out x C_in` has `n = max(C_in, C_out)` rows and `q = min(C_in, C_out)` columns and the parameters `S`, skew-Hermitian
//! `q x q`, and `V`, `(n - q) x q`. With `A = S + V^H V` and `M = (I + A)^-1`, which exists because the Hermitian part of `I + A` is at
//! least `I`, the Cayley transform is
//!
//! `Q = [2 M - I; -2 V M]`, `Q^H Q = I`,
//!
//! every matrix with orthonormal columns but those at the edge of its reach (an eigenvalue of -1), with as many parameters as such matrices
//! have degrees of freedom. `K = Q` where there are more outputs, its transpose where there are more inputs. Self-conjugate bins are real:
//! `S` is skew-symmetric.
//!
//! With the gradient `G = [G_1; G_2]` of `Q` (`dL = Re tr(G^H dQ)`): `G_M = 2 G_1 - 2 V^H G_2`, `G_A = -M^H G_M M^H`,
//! `G_V = -2 G_2 M^H + V (G_A + G_A^H)`, and that of `S` is the skew-Hermitian part of `G_A`.
//!
//! Lanes hold different bins, and a bin that is real counts as complex: there are four of them at most.

mod dense;
mod matrix;

use circulant_core::{Bin, HalfPlane};

use self::matrix::Matrix;
use crate::error::{KernelError, expect_len, expect_positive, volume};
use crate::real::Real;
use crate::runtime::chunks::{best_isa, run_all};
use crate::vector::{Kernel, MAX_LANES, Present, Vector};

/// Isometries of all free bins of a half plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isometries {
    /// Whether a free bin is complex, in the order of the coordinates.
    complex: Vec<bool>,
    channels_in: usize,
    channels_out: usize,
}

impl Isometries {
    /// For the BCCB operator between so many channels. A bin that a mask removes would be no isometry: the plane must be whole.
    pub fn new(
        plane: &HalfPlane,
        channels_in: usize,
        channels_out: usize,
    ) -> Result<Self, KernelError> {
        expect_positive(&[("C_in", channels_in), ("C_out", channels_out)])?;
        let pixels = plane.height() * plane.width();
        let whole = "the coordinates of a plane without a mask";
        expect_len(whole, plane.coordinates(), pixels)?;
        volume("the coordinates", &[pixels, channels_in, channels_out])?;
        let complex = plane.iter().filter_map(|bin| match bin {
            Bin::Real { .. } => Some(false),
            Bin::Complex { .. } => Some(true),
            Bin::Conjugate { .. } | Bin::Masked => None,
        });
        Ok(Self {
            complex: complex.collect(),
            channels_in,
            channels_out,
        })
    }

    /// Real parameters of all bins.
    pub fn parameters(&self) -> usize {
        self.groups().map(|group| group.parameters()).sum()
    }

    /// Coordinates of the operator, `[coordinate, C_in, C_out]`.
    pub fn coordinates(&self) -> usize {
        self.groups().map(|group| group.coordinates()).sum()
    }

    /// The coordinates of the isometries that have these parameters.
    pub fn coordinates_into<T: Real>(
        &self,
        parameters: &[T],
        coordinates: &mut [T],
    ) -> Result<(), KernelError> {
        expect_len("the parameters", parameters.len(), self.parameters())?;
        expect_len("the coordinates", coordinates.len(), self.coordinates())?;
        if let Some(sizes @ Sizes { n, q, .. }) = self.one_real() {
            dense::coordinates([n, q], sizes.wide, parameters, coordinates);
            return Ok(());
        }
        let (isa, total) = (best_isa(), coordinates.len());
        let (mut parameters, mut rest) = (parameters, coordinates);
        let jobs = self.groups().map(|group| IsometryGroup {
            parameters: cut(&mut parameters, group.parameters()),
            coordinates: cut_mut(&mut rest, group.coordinates()),
            group,
        });
        run_all(total, jobs, |job| T::isometry_group(isa, job));
        Ok(())
    }

    /// The gradient of the parameters from that of the coordinates.
    pub fn gradient_into<T: Real>(
        &self,
        parameters: &[T],
        gradient: &[T],
        parameter_gradient: &mut [T],
    ) -> Result<(), KernelError> {
        let all = self.parameters();
        expect_len("the parameters", parameters.len(), all)?;
        expect_len("the gradient", gradient.len(), self.coordinates())?;
        let what = "the gradient of the parameters";
        expect_len(what, parameter_gradient.len(), all)?;
        if let Some(sizes @ Sizes { n, q, .. }) = self.one_real() {
            dense::gradient([n, q], sizes.wide, parameters, gradient, parameter_gradient);
            return Ok(());
        }
        let (isa, total) = (best_isa(), gradient.len());
        let (mut parameters, mut gradient, mut rest) = (parameters, gradient, parameter_gradient);
        let jobs = self.groups().map(|group| IsometryGradient {
            parameters: cut(&mut parameters, group.parameters()),
            gradient: cut(&mut gradient, group.coordinates()),
            parameter_gradient: cut_mut(&mut rest, group.parameters()),
            group,
        });
        run_all(total, jobs, |job| T::isometry_gradient(isa, job));
        Ok(())
    }

    /// The parameters that are those of two operators: where each stands in the coordinates of the operator `S` from `q` to `q` channels,
    /// followed by those of `V` from `q` to `n - q` channels. `S` must be skew: `K(f)^H = -K(f)`.
    pub fn places_in_operators(&self) -> Vec<usize> {
        let sizes @ Sizes { n, q, .. } = self.sizes();
        let (square, tail) = (q * q, (n - q) * q);
        let all: usize = self.complex.iter().map(|&complex| 1 + usize::from(complex)).sum();
        let mut places = Vec::with_capacity(self.parameters());
        let mut coordinate = 0;
        for &complex in &self.complex {
            let own = |i: usize, j: usize| coordinate * square + j * q + i;
            let behind = |entry: usize| {
                let (row, column) = (entry / q, entry % q);
                all * square + coordinate * tail + column * (n - q) + row
            };
            sizes.each_part(complex, |_, part| {
                places.push(match part {
                    Part::Diagonal(i) => own(i, i) + square,
                    Part::Real(i, j) => own(i, j),
                    Part::Imaginary(i, j) => own(i, j) + square,
                    Part::TailReal(entry) => behind(entry),
                    Part::TailImaginary(entry) => behind(entry) + tail,
                });
            });
            coordinate += 1 + usize::from(complex);
        }
        places
    }

    /// The sizes, where there is one bin and it is real.
    fn one_real(&self) -> Option<Sizes> {
        (self.complex == [false]).then(|| self.sizes())
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            n: self.channels_in.max(self.channels_out),
            q: self.channels_in.min(self.channels_out),
            wide: self.channels_in > self.channels_out,
        }
    }

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let sizes = self.sizes();
        let bins = self.complex.chunks(MAX_LANES);
        bins.map(move |complex| Group { complex, sizes })
    }
}

/// The first values of a slice, which loses them.
fn cut<'a, T>(slice: &mut &'a [T], count: usize) -> &'a [T] {
    let (first, rest) = slice.split_at(count);
    *slice = rest;
    first
}

fn cut_mut<'a, T>(slice: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let (first, rest) = std::mem::take(slice).split_at_mut(count);
    *slice = rest;
    first
}

/// Rows and columns of Q, and whether the operator is its transpose.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    n: usize,
    q: usize,
    wide: bool,
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The imaginary part of `S[i, i]`.
    Diagonal(usize),
    /// The real part of `S[i, j]`, below the diagonal.
    Real(usize, usize),
    /// Its imaginary part.
    Imaginary(usize, usize),
    /// The real part of an entry of V.
    TailReal(usize),
    /// Its imaginary part.
    TailImaginary(usize),
}

impl Sizes {
    /// The parameters of a bin, in their order: plain loops, because an iterator of so many parts takes longer than the product of two
    /// matrices.
    #[inline(always)]
    fn each_part(self, complex: bool, mut see: impl FnMut(usize, Part)) {
        let mut index = 0;
        let mut next = |part: Part| {
            see(index, part);
            index += 1;
        };
        for i in 0..self.q {
            for j in 0..i {
                next(Part::Real(i, j));
                if complex {
                    next(Part::Imaginary(i, j));
                }
            }
            if complex {
                next(Part::Diagonal(i));
            }
        }
        for entry in 0..(self.n - self.q) * self.q {
            next(Part::TailReal(entry));
            if complex {
                next(Part::TailImaginary(entry));
            }
        }
    }

    /// Parameters of a bin.
    #[inline(always)]
    fn parameters(self, complex: bool) -> usize {
        let Self { n, q, .. } = self;
        match complex {
            true => q * q + 2 * (n - q) * q,
            false => q * (q - 1) / 2 + (n - q) * q,
        }
    }

    /// Rows and columns of Q in the order of the operator's entries: `row, column` of the entries 0, 1, ...
    #[inline(always)]
    fn each_entry(self, mut see: impl FnMut(usize, usize, usize)) {
        let (outer, inner) = match self.wide {
            true => (self.n, self.q),
            false => (self.q, self.n),
        };
        for first in 0..outer {
            for second in 0..inner {
                let (row, column) = match self.wide {
                    true => (first, second),
                    false => (second, first),
                };
                see(first * inner + second, row, column);
            }
        }
    }
}

/// Bins that share the lanes.
#[derive(Debug, Clone, Copy)]
struct Group<'a> {
    complex: &'a [bool],
    sizes: Sizes,
}

impl Group<'_> {
    fn parameters(&self) -> usize {
        let bins = self.complex.iter();
        bins.map(|&complex| self.sizes.parameters(complex)).sum()
    }

    fn coordinates(&self) -> usize {
        let parts = self.complex.iter().map(|&complex| 1 + usize::from(complex));
        parts.sum::<usize>() * self.sizes.n * self.sizes.q
    }

    /// Where the coordinates of each bin begin.
    #[inline(always)]
    fn starts(&self) -> [usize; MAX_LANES] {
        let (mut starts, mut next) = ([0; MAX_LANES], 0);
        for (start, &complex) in starts.iter_mut().zip(self.complex) {
            *start = next;
            next += (1 + usize::from(complex)) * self.sizes.n * self.sizes.q;
        }
        starts
    }

    /// `M` and `V`.
    #[inline(always)]
    fn transform<T: Real, V: Vector<Scalar = T>>(
        &self,
        there: Present<V>,
        parameters: &[T],
    ) -> [Matrix<T>; 2] {
        let Sizes { n, q, .. } = self.sizes;
        let (mut a, mut v) = (Matrix::zeros(q, q), Matrix::zeros(n - q, q));
        let mut rest = parameters;
        for (lane, &complex) in self.complex.iter().enumerate() {
            let own = cut(&mut rest, self.sizes.parameters(complex));
            self.sizes.each_part(complex, |index, part| {
                let value = own[index];
                match part {
                    Part::Diagonal(i) => a.im[i * q + i][lane] = value,
                    Part::Real(i, j) => {
                        a.re[i * q + j][lane] = value;
                        a.re[j * q + i][lane] = -value;
                    }
                    Part::Imaginary(i, j) => {
                        a.im[i * q + j][lane] = value;
                        a.im[j * q + i][lane] = value;
                    }
                    Part::TailReal(entry) => v.re[entry][lane] = value,
                    Part::TailImaginary(entry) => v.im[entry][lane] = value,
                }
            });
        }
        a.add_product(there, v.adjoint(), v.plain());
        for i in 0..q {
            for value in &mut a.re[i * q + i] {
                *value = *value + T::of(1.0);
            }
        }
        a.invert(there);
        [a, v]
    }
}

/// The coordinates of some bins.
pub struct IsometryGroup<'a, T> {
    group: Group<'a>,
    parameters: &'a [T],
    coordinates: &'a mut [T],
}

impl<T: Real> Kernel<T> for IsometryGroup<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) {
        let sizes @ Sizes { n, q, .. } = self.group.sizes;
        let [m, v] = self.group.transform::<T, V>(there, self.parameters);
        let mut tail = Matrix::zeros(n - q, q);
        tail.add_product(there, v.plain(), m.plain());
        let two = T::of(2.0);
        let (starts, coordinates) = (self.group.starts(), self.coordinates);
        sizes.each_entry(|entry, row, column| {
            let (own, at, factor) = match row < q {
                true => (&m, row * q + column, two),
                false => (&tail, (row - q) * q + column, -two),
            };
            let one = T::of(f64::from(u8::from(row == column)));
            for ((lane, &complex), start) in self.group.complex.iter().enumerate().zip(starts) {
                coordinates[start + entry] = factor * own.re[at][lane] - one;
                if complex {
                    coordinates[start + n * q + entry] = factor * own.im[at][lane];
                }
            }
        });
    }
}

/// The gradient of the parameters of some bins.
pub struct IsometryGradient<'a, T> {
    group: Group<'a>,
    parameters: &'a [T],
    gradient: &'a [T],
    parameter_gradient: &'a mut [T],
}

impl<T: Real> Kernel<T> for IsometryGradient<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) {
        let sizes @ Sizes { n, q, .. } = self.group.sizes;
        let [m, v] = self.group.transform::<T, V>(there, self.parameters);
        // 2 G_1 and -2 G_2.
        let (mut top, mut tail) = (Matrix::zeros(q, q), Matrix::zeros(n - q, q));
        let (starts, gradient) = (self.group.starts(), self.gradient);
        sizes.each_entry(|entry, row, column| {
            let (own, at, factor) = match row < q {
                true => (&mut top, row * q + column, T::of(2.0)),
                false => (&mut tail, (row - q) * q + column, T::of(-2.0)),
            };
            for ((lane, &complex), start) in self.group.complex.iter().enumerate().zip(starts) {
                own.re[at][lane] = factor * gradient[start + entry];
                if complex {
                    own.im[at][lane] = factor * gradient[start + n * q + entry];
                }
            }
        });
        // G_M, and then -G_A and G_V.
        top.add_product(there, v.adjoint(), tail.plain());
        let (mut left, mut a) = (Matrix::zeros(q, q), Matrix::zeros(q, q));
        left.add_product(there, m.adjoint(), top.plain());
        a.add_product(there, left.plain(), m.adjoint());
        let mut of_v = Matrix::zeros(n - q, q);
        of_v.add_product(there, tail.plain(), m.adjoint());
        if n > q {
            let mut negative = v;
            negative.negate();
            of_v.add_product(there, negative.plain(), a.plain());
            of_v.add_product(there, negative.plain(), a.adjoint());
        }
        let mut rest = self.parameter_gradient;
        for (lane, &complex) in self.group.complex.iter().enumerate() {
            let own = cut_mut(&mut rest, sizes.parameters(complex));
            sizes.each_part(complex, |index, part| {
                own[index] = match part {
                    Part::Diagonal(i) => -a.im[i * q + i][lane],
                    Part::Real(i, j) => a.re[j * q + i][lane] - a.re[i * q + j][lane],
                    Part::Imaginary(i, j) => -a.im[i * q + j][lane] - a.im[j * q + i][lane],
                    Part::TailReal(entry) => of_v.re[entry][lane],
                    Part::TailImaginary(entry) => of_v.im[entry][lane],
                };
            });
        }
    }
}
