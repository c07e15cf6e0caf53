//! Vectors of numbers and the choice of instruction set at run time.
//!
//! A kernel is written once, generic over [`Vector`], as a [`Kernel`]; [`Isa::run`] compiles it for
//! every instruction set and enters the one that the plan was made for. Lanes always hold
//! different rows or images, so a vector needs arithmetic, loads and stores, one square
//! transposition at the boundary to row-major memory and sums over its lanes, nothing else.
//!
//! `unsafe` is sound here because a vector type of an instruction set is only ever used below
//! [`Isa::run`], which enters it after the processor has reported that it has that set.

pub(crate) mod elementary;
pub(crate) mod lane_sums;
pub(crate) mod negative_exponential;
pub(crate) mod normal_tail;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use portable::Lanes;

use crate::real::Real;

/// No vector has more lanes.
pub const MAX_LANES: usize = 16;

/// A register full of numbers of different rows.
///
/// Loads and stores read and write `LANES` consecutive numbers and need no alignment.
pub trait Vector: Copy {
    /// The number type of a lane.
    type Scalar: Real;
    /// The vector whose square blocks are transposed in registers.
    type Tile: Tile<Scalar = Self::Scalar>;
    /// Numbers per vector.
    const LANES: usize;
    /// Whether [`Self::fused`] rounds once.
    const FUSED: bool;

    /// # Safety
    /// `from` must be valid for reading `LANES` numbers.
    unsafe fn load(from: *const Self::Scalar) -> Self;
    /// # Safety
    /// `to` must be valid for writing `LANES` numbers.
    unsafe fn store(self, to: *mut Self::Scalar);
    /// The same number in every lane.
    fn splat(value: Self::Scalar) -> Self;
    /// Lane-wise sum.
    fn add(self, other: Self) -> Self;
    /// Lane-wise difference.
    fn sub(self, other: Self) -> Self;
    /// Lane-wise product.
    fn mul(self, other: Self) -> Self;
    /// Lane-wise quotient.
    fn div(self, other: Self) -> Self;
    /// Lane-wise minimum.
    fn min(self, other: Self) -> Self;
    /// Lane-wise maximum.
    fn max(self, other: Self) -> Self;
    /// `self*factor + addend`.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// `addend - self*factor`.
    fn neg_mul_add(self, factor: Self, addend: Self) -> Self;
    /// A vector of a tile's width with the same sum of all lanes.
    fn folded(self) -> Self::Tile;
    /// `a*b + c` of single numbers, rounded once where the instruction set can: for loops that the
    /// compiler turns into vectors itself.
    fn fused(a: Self::Scalar, b: Self::Scalar, c: Self::Scalar) -> Self::Scalar;
    /// Runs `work`, which must be `#[inline(always)]`, as a function of its own with the features of
    /// this vector. A kernel of many variants is cut into such functions: the compiler's time grows
    /// faster than the length of a function.
    fn call<R>(work: impl FnOnce() -> R) -> R;
}

/// A vector whose square blocks can be transposed.
pub trait Tile: Vector {
    /// Reads the square block of rows `row(i)`, transposes it, and writes row `j` of the result to `column(j)`, in the
    /// order of `j`.
    ///
    /// # Safety
    /// `column(j)` must be valid for writing `LANES` numbers, none of which `row(i)` reads.
    unsafe fn transpose(
        row: impl FnMut(usize) -> Self,
        column: impl FnMut(usize) -> *mut Self::Scalar,
    );
    /// Lane `i` is the sum of the lanes of `row(i)`.
    fn sums(row: impl FnMut(usize) -> Self) -> Self;
}

/// The vector types of a number type.
pub trait RealSimd: Copy + Sized {
    /// For processors without a listed instruction set. The compiler turns its loops into the
    /// target's baseline vectors: SSE2 on x86-64, NEON on aarch64.
    type Portable: Vector<Scalar = Self>;
    /// AVX2 with FMA.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Vector<Scalar = Self>;
    /// AVX-512F. In f64, which is for checks, AVX2 serves there too: its own kernels would make
    /// every build a sixth longer.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Vector<Scalar = Self>;

    /// Runs a kernel on a processor with AVX-512F.
    ///
    /// # Safety
    /// The processor must have AVX-512F, AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    unsafe fn run_avx512<K: Kernel<Self>>(kernel: K) -> K::Output
    where
        Self: Real;
}

/// Asks for the cache line of an address that will be needed soon; any address is allowed.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint, never an access, and part of every x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl RealSimd for f32 {
    type Portable = Lanes<f32, 8>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::F32x8;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::F32x16;

    #[cfg(target_arch = "x86_64")]
    unsafe fn run_avx512<K: Kernel<Self>>(kernel: K) -> K::Output {
        // SAFETY: the caller's promise.
        unsafe { run_avx512(kernel) }
    }
}

impl RealSimd for f64 {
    type Portable = Lanes<f64, 4>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::F64x4;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::F64x4;

    #[cfg(target_arch = "x86_64")]
    unsafe fn run_avx512<K: Kernel<Self>>(kernel: K) -> K::Output {
        // SAFETY: the caller's promise.
        unsafe { run_avx2(kernel) }
    }
}

/// Work that is compiled once per instruction set.
pub trait Kernel<T: Real> {
    type Output;
    /// Must be `#[inline(always)]`, with everything below it, so that it is compiled with the
    /// features of the instruction set that calls it.
    fn run<V: Vector<Scalar = T>>(self) -> Self::Output;
}

/// An instruction set that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// All that this processor has, the best one last.
    pub(crate) fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "only some targets have more than one")]
        let mut sets = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                sets.push(Self::Avx2);
                if is_x86_feature_detected!("avx512f") {
                    sets.push(Self::Avx512);
                }
            }
        }
        sets
    }

    pub(crate) fn best() -> Self {
        *Self::available()
            .last()
            .expect("the portable set is always there")
    }

    /// Lanes of a vector of `T`.
    pub(crate) fn lanes<T: Real>(self) -> usize {
        match self {
            Self::Portable => <T::Portable as Vector>::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => <T::Avx2 as Vector>::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => <T::Avx512 as Vector>::LANES,
        }
    }

    pub(crate) fn run<T: Real, K: Kernel<T>>(self, kernel: K) -> K::Output {
        match self {
            Self::Portable => kernel.run::<T::Portable>(),
            // SAFETY: an `Isa` value comes from `available`, which asked the processor.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { T::run_avx512(kernel) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<T: Real, K: Kernel<T>>(kernel: K) -> K::Output {
    kernel.run::<T::Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn run_avx512<T: Real, K: Kernel<T>>(kernel: K) -> K::Output {
    kernel.run::<T::Avx512>()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Arithmetic;

    impl Kernel<f32> for Arithmetic {
        type Output = Vec<f32>;
        #[inline(always)]
        fn run<V: Vector<Scalar = f32>>(self) -> Vec<f32> {
            let data: Vec<f32> = (0..V::LANES).map(|i| i as f32 - 3.0).collect();
            let mut out = vec![0.0; 9 * V::LANES];
            let two = V::splat(2.0);
            // SAFETY: every slice has at least `LANES` numbers.
            unsafe {
                let x = V::load(data.as_ptr());
                let results = [
                    x.add(two),
                    x.sub(two),
                    x.mul(two),
                    x.div(two),
                    x.min(two),
                    x.max(two),
                    x.mul_add(two, x),
                    x.neg_mul_add(two, x),
                    x,
                ];
                for (i, y) in results.into_iter().enumerate() {
                    y.store(out.as_mut_ptr().add(i * V::LANES));
                }
            }
            out
        }
    }

    #[test]
    fn arithmetic_of_every_instruction_set() {
        for isa in Isa::available() {
            let lanes = isa.lanes::<f32>();
            let out = isa.run(Arithmetic);
            for i in 0..lanes {
                let x = i as f32 - 3.0;
                let expected = [
                    x + 2.0,
                    x - 2.0,
                    x * 2.0,
                    x / 2.0,
                    x.min(2.0),
                    x.max(2.0),
                    3.0 * x,
                    -x,
                    x,
                ];
                for (j, &y) in expected.iter().enumerate() {
                    assert_eq!(out[j * lanes + i], y, "{isa:?}, operation {j}, lane {i}");
                }
            }
        }
    }

    struct Transpose<T>(Vec<T>);

    impl<T: Real> Kernel<T> for Transpose<T> {
        type Output = (usize, Vec<T>);
        #[inline(always)]
        fn run<V: Vector<Scalar = T>>(self) -> (usize, Vec<T>) {
            let side = <V::Tile as Vector>::LANES;
            let mut out = vec![T::zero(); side * side];
            let to = out.as_mut_ptr();
            // SAFETY: both blocks hold `side*side` numbers and are different allocations.
            unsafe {
                V::Tile::transpose(
                    |i| V::Tile::load(self.0.as_ptr().add(i * side)),
                    |j| to.add(j * side),
                );
            }
            (side, out)
        }
    }

    fn check_transpose<T: Real>() {
        for isa in Isa::available() {
            let numbers: Vec<T> = (0..256).map(|i| T::of(f64::from(i))).collect();
            let (side, out) = isa.run(Transpose(numbers.clone()));
            for i in 0..side {
                for j in 0..side {
                    assert_eq!(out[j * side + i], numbers[i * side + j], "{isa:?}");
                }
            }
        }
    }

    struct Sums<T>(Vec<T>);

    impl<T: Real> Kernel<T> for Sums<T> {
        type Output = (Vec<T>, Vec<T>);
        #[inline(always)]
        fn run<V: Vector<Scalar = T>>(self) -> (Vec<T>, Vec<T>) {
            let side = <V::Tile as Vector>::LANES;
            let mut out = vec![T::zero(); side];
            // SAFETY: there are `side` rows of `V::LANES` numbers each, and room for `side` sums.
            unsafe {
                let row = |i| V::load(self.0.as_ptr().add(i * V::LANES)).folded();
                V::Tile::sums(row).store(out.as_mut_ptr());
            }
            let rows = self.0.chunks_exact(V::LANES).take(side);
            let plain = rows.map(|row| row.iter().fold(T::zero(), |sum, &x| sum + x));
            (out, plain.collect())
        }
    }

    fn check_sums<T: Real>() {
        for isa in Isa::available() {
            // Whole numbers: exact in any order.
            let numbers = (0..256).map(|i| T::of(f64::from(i * i % 101)));
            let (sums, plain) = isa.run(Sums(numbers.collect()));
            assert_eq!(sums, plain, "{isa:?}");
        }
    }

    #[test]
    fn sums_over_the_lanes_of_every_instruction_set() {
        check_sums::<f32>();
        check_sums::<f64>();
    }

    #[test]
    fn transposition_of_every_instruction_set() {
        check_transpose::<f32>();
        check_transpose::<f64>();
    }
}
