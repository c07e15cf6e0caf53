//! Half spectra of real signals and back, any length, in memory of the caller.
//!
//! `X[k] = sum_t x[t] exp(-2 pi i k t/n)` for `k = 0..=n/2`, and its inverse, which divides by `n`
//! (`docs/mathematics.md`, section 1). A signal of even length is transformed as one of `n/2` complex
//! values; the complex transform splits off factors 4, 2 and odd primes, whose transforms are sums by
//! definition. So a length costs about `n` times the sum of its prime factors.

mod mixed_radix;
mod roots;

pub(crate) use mixed_radix::{Signal, transform, work_len};
pub(crate) use roots::Roots;

use num_complex::Complex;

use crate::error::{SizeError, expect_len, expect_positive, product};
use crate::scalar::Scalar;

/// The transform of real signals of one length.
///
/// ```
/// use circulant_core::{Complex, RealTransform};
///
/// let mut roots = [Complex::new(0.0, 0.0); 2];
/// assert_eq!(RealTransform::<f64>::roots_len(3), roots.len());
/// let transform = RealTransform::new(3, &mut roots)?;
/// let mut scratch = [Complex::new(0.0, 0.0); 6];
/// assert_eq!(transform.scratch_len(), scratch.len());
///
/// let mut half = [Complex::new(0.0, 0.0); 2];
/// transform.forward(&[1.0, 1.0, 1.0], &mut half, &mut scratch)?;
/// assert!((half[0] - 3.0).norm() < 1e-15 && half[1].norm() < 1e-15);
/// # Ok::<(), circulant_core::SizeError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RealTransform<'a, T> {
    length: usize,
    roots: Roots<'a, T>,
    scratch: usize,
}

impl<'a, T: Scalar> RealTransform<'a, T> {
    /// Values of memory that a transform of this length keeps, `length/2 + 1`.
    pub fn roots_len(length: usize) -> usize {
        length / 2 + 1
    }

    /// The transform of signals of `length` values; `roots` has [`Self::roots_len`] and is filled here.
    pub fn new(length: usize, roots: &'a mut [Complex<T>]) -> Result<Self, SizeError> {
        expect_positive(&[("the length", length)])?;
        // The work space of a factor is at most as long as what it transforms.
        product("the scratch of a transform", length, 2)?;
        let complex = Self::complex_len(length);
        Ok(Self {
            length,
            roots: Roots::new(length, roots)?,
            scratch: complex + work_len(complex),
        })
    }

    /// The same with roots `exp(-2 pi i k/length)`, `k = 0..=length/2`, that were made before.
    pub fn with_roots(length: usize, roots: &'a [Complex<T>]) -> Result<Self, SizeError> {
        expect_positive(&[("the length", length)])?;
        product("the scratch of a transform", length, 2)?;
        let complex = Self::complex_len(length);
        Ok(Self {
            length,
            roots: Roots::given(length, roots)?,
            scratch: complex + work_len(complex),
        })
    }

    /// The length of the complex transform behind a real one.
    fn complex_len(length: usize) -> usize {
        if length.is_multiple_of(2) {
            length / 2
        } else {
            length
        }
    }

    /// The length of the signals.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The number of bins, `length/2 + 1`.
    pub fn bins(&self) -> usize {
        self.length / 2 + 1
    }

    /// Values of scratch memory that both directions need. What it holds does not matter.
    pub fn scratch_len(&self) -> usize {
        self.scratch
    }

    fn check(&self, signal: usize, half: usize, scratch: usize) -> Result<(), SizeError> {
        expect_len("signal", signal, self.length)?;
        expect_len("half spectrum", half, self.bins())?;
        expect_len("scratch", scratch, self.scratch)
    }

    /// A signal's half spectrum.
    pub fn forward(
        &self,
        signal: &[T],
        half: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        expect_len("signal", signal.len(), self.length)?;
        self.forward_of(&|t| signal[t], 0, half, scratch)
    }

    /// The half spectrum of the signal with the values `value(first), value(first + 1), ...`.
    pub fn forward_of(
        &self,
        value: &dyn Fn(usize) -> T,
        first: usize,
        half: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        self.check(self.length, half.len(), scratch.len())?;
        for (t, pair) in scratch[..self.length.div_ceil(2)].iter_mut().enumerate() {
            let last = (2 * t + 1).min(self.length - 1);
            *pair = Complex::new(value(first + 2 * t), value(first + last));
        }
        self.forward_in_place(half, scratch)
    }

    /// The half spectrum of the signal at the beginning of `scratch`, two values after the other in the real and the imaginary
    /// parts, as [`Self::inverse_in_place`] leaves it.
    ///
    /// ```
    /// use circulant_core::{Complex, RealTransform};
    ///
    /// let mut roots = [Complex::new(0.0, 0.0); 3];
    /// let transform = RealTransform::new(4, &mut roots)?;
    /// let (mut half, mut scratch) = ([Complex::new(0.0, 0.0); 3], [Complex::new(0.0, 0.0); 2]);
    /// scratch.copy_from_slice(&[Complex::new(1.0, 2.0), Complex::new(3.0, 5.0)]);
    /// transform.forward_in_place(&mut half, &mut scratch)?;
    /// assert_eq!(half[0].re, 11.0);
    /// transform.inverse_in_place(&mut half, &mut scratch)?;
    /// assert!((scratch[1].im - 4.0 * 5.0_f64).abs() < 1e-14);
    /// # Ok::<(), circulant_core::SizeError>(())
    /// ```
    pub fn forward_in_place(
        &self,
        half: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        self.check(self.length, half.len(), scratch.len())?;
        let length = Self::complex_len(self.length);
        let (full, work) = scratch.split_at_mut(length);
        if length == self.length {
            let pairs = length.div_ceil(2);
            half[..pairs].copy_from_slice(&full[..pairs]);
            let at = |t: usize| {
                let pair = half[t / 2];
                let value = if t.is_multiple_of(2) {
                    pair.re
                } else {
                    pair.im
                };
                Complex::new(value, T::zero())
            };
            transform(self.roots, Signal::new(&at), full, work);
            half.copy_from_slice(&full[..self.bins()]);
            return Ok(());
        }
        let at = |t: usize| full[t];
        transform(self.roots, Signal::new(&at), &mut half[..length], work);
        self.split_pairs(half);
        Ok(())
    }

    /// The first bins of the half spectrum of the signal that stands in `signal`, two values after the other: by Goertzel's
    /// recurrence `s[t] = x[t] + 2 cos(2 pi k/n) s[t-1] - s[t-2]`, `X[k] = w^-k s[n-1] - s[n-2]`, which is less work than a
    /// transform for a few bins. Its rounding errors grow with the length.
    ///
    /// ```
    /// use circulant_core::{Complex, RealTransform};
    ///
    /// let mut roots = [Complex::new(0.0, 0.0); 2];
    /// let transform = RealTransform::new(3, &mut roots)?;
    /// let mut bins = [Complex::new(0.0_f64, 0.0); 1];
    /// transform.first_bins(&[Complex::new(1.0, 2.0), Complex::new(4.0, 0.0)], &mut bins)?;
    /// assert!((bins[0] - 7.0).norm() < 1e-14);
    /// # Ok::<(), circulant_core::SizeError>(())
    /// ```
    pub fn first_bins(
        &self,
        signal: &[Complex<T>],
        bins: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        expect_len("signal", signal.len(), self.length.div_ceil(2))?;
        if bins.len() > self.bins() {
            return expect_len("bins", bins.len(), self.bins());
        }
        let (pairs, last) = match (self.length.is_multiple_of(2), signal.split_last()) {
            (false, Some((last, pairs))) => (pairs, Some(last.re)),
            _ => (signal, None),
        };
        for (k, bin) in bins.iter_mut().enumerate() {
            let root = self.roots.at(k);
            let twice = root.re + root.re;
            let (mut one, mut two) = (T::zero(), T::zero());
            for pair in pairs {
                two = pair.re + twice * one - two;
                one = pair.im + twice * two - one;
            }
            if let Some(last) = last {
                (one, two) = (last + twice * one - two, one);
            }
            // The root is that of the other direction.
            *bin = Complex::new(root.re * one - two, -(root.im * one));
        }
        Ok(())
    }

    /// From the transform `Z` of `x[2t] + i x[2t+1]`, `m = n/2` values, to the half spectrum of `x`:
    /// `X[k] = E[k] + w^k O[k]` with the transforms `E` and `O` of the even and the odd values, which are
    /// the Hermitian and the anti-Hermitian part of `Z`.
    fn split_pairs(&self, half: &mut [Complex<T>]) {
        let m = self.length / 2;
        let first = half[0];
        half[0] = Complex::new(first.re + first.im, T::zero());
        half[m] = Complex::new(first.re - first.im, T::zero());
        let one_half = T::of(0.5);
        for k in 1..=m / 2 {
            let (a, b) = (half[k], half[m - k].conj());
            let even = (a + b).scale(one_half);
            let difference = (a - b).scale(one_half);
            let odd = Complex::new(difference.im, -difference.re) * self.roots.at(k);
            half[k] = even + odd;
            half[m - k] = (even - odd).conj();
        }
    }

    /// The signal of a half spectrum. The imaginary parts of self-conjugate bins are ignored.
    pub fn inverse(
        &self,
        half: &[Complex<T>],
        signal: &mut [T],
        scratch: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        expect_len("signal", signal.len(), self.length)?;
        self.sums(half, scratch)?;
        let scale = T::of(1.0 / self.length as f64);
        for (t, value) in signal.iter_mut().enumerate() {
            *value = self.sum_at(scratch, t) * scale;
        }
        Ok(())
    }

    /// `length` times the signal of a half spectrum, two values after the other in the real and the imaginary parts at the
    /// beginning of `scratch`. Whoever divides the spectrum first saves the division of every signal. The half spectrum is used
    /// up.
    pub fn inverse_in_place(
        &self,
        half: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        if self.length.is_multiple_of(2) {
            self.check(self.length, half.len(), scratch.len())?;
            self.join_pairs(half);
            let (full, work) = scratch.split_at_mut(self.length / 2);
            let at = |k: usize| half[k];
            transform(self.roots, Signal::new(&at), full, work);
            for pair in full {
                *pair = swapped(*pair);
            }
            return Ok(());
        }
        self.sums(half, scratch)?;
        // A pair never lies behind the sums that it is made of.
        for pair in 0..self.length.div_ceil(2) {
            let second = (2 * pair + 1).min(self.length - 1);
            let (first, second) = (self.sum_at(scratch, 2 * pair), self.sum_at(scratch, second));
            scratch[pair] = Complex::new(first, second);
        }
        Ok(())
    }

    /// Value `t` of the signal, times the length, in the scratch of [`Self::sums`].
    #[inline]
    fn sum_at(&self, scratch: &[Complex<T>], t: usize) -> T {
        if !self.length.is_multiple_of(2) {
            scratch[t].im
        } else if t.is_multiple_of(2) {
            scratch[t / 2].im
        } else {
            scratch[t / 2].re
        }
    }

    /// The sums behind an inverse transform.
    fn sums(&self, half: &[Complex<T>], scratch: &mut [Complex<T>]) -> Result<(), SizeError> {
        self.check(self.length, half.len(), scratch.len())?;
        let length = Self::complex_len(self.length);
        let (full, work) = scratch.split_at_mut(length);
        if length == self.length {
            let at = |k: usize| match k {
                0 => Complex::new(T::zero(), half[0].re),
                _ if k < half.len() => swapped(half[k]),
                _ => swapped(half[length - k].conj()),
            };
            transform(self.roots, Signal::new(&at), full, work);
            return Ok(());
        }
        let at = |k: usize| swapped(self.join_pair(half, k));
        transform(self.roots, Signal::new(&at), full, work);
        Ok(())
    }

    /// [`Self::join_pair`] of all bins in their place, real and imaginary parts exchanged: bins `k` and `m - k` are conjugate sums
    /// of the same two numbers.
    fn join_pairs(&self, half: &mut [Complex<T>]) {
        let m = self.length / 2;
        half[0] = swapped(self.join_pair(half, 0));
        for k in 1..=m / 2 {
            let (a, b) = (half[k], half[m - k].conj());
            let even = a + b;
            let odd = (a - b) * self.roots.at(k).conj();
            half[k] = Complex::new(even.im + odd.re, even.re - odd.im);
            half[m - k] = Complex::new(odd.re - even.im, even.re + odd.im);
        }
    }

    /// Twice the `Z[k]` of [`Self::split_pairs`].
    fn join_pair(&self, half: &[Complex<T>], k: usize) -> Complex<T> {
        let m = self.length / 2;
        if k == 0 {
            let (first, last) = (half[0].re, half[m].re);
            return Complex::new(first + last, first - last);
        }
        let (a, b) = (half[k], half[m - k].conj());
        let odd = (a - b) * self.roots.at(k).conj();
        (a + b) + Complex::new(-odd.im, odd.re)
    }
}

/// Real and imaginary part exchanged: the inverse transform is the forward one between two of these.
pub(crate) fn swapped<T: Scalar>(value: Complex<T>) -> Complex<T> {
    Complex::new(value.im, value.re)
}
