//! Vectors of values and the choice of instruction set at run time.
//!
//! A kernel is written once, generic over [`Vector`], as a [`Kernel`]; [`Isa::run`] compiles it for
//! every instruction set and enters the one that the plan was made for. Lanes always hold
//! different rows or images, so a vector needs arithmetic, loads and stores, one square
//! transposition at the boundary to row-major memory and sums over its lanes, nothing else.
//!
//! `unsafe` is sound here because instructions that may be missing need a proof that they are there: an [`Isa`] is only made
//! from what the processor reports, [`Isa::run`] hands a [`Present`] of its vectors to the kernel, and a vector itself is
//! proof enough for its own arithmetic. Only what makes vectors from nothing or from memory is `unsafe`, and asks for the
//! instruction set as well as for the memory.

pub mod elementary;
pub mod lane_sums;
pub mod negative_exponential;
pub mod normal_tail;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use portable::Lanes;

use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::real::Real;

/// No vector has more lanes.
pub const MAX_LANES: usize = 16;
const _: () = {
    assert!(<f32 as RealSimd>::Portable::LANES <= MAX_LANES);
    assert!(<f64 as RealSimd>::Portable::LANES <= MAX_LANES);
};
#[cfg(target_arch = "x86_64")]
const _: () = {
    assert!(<f32 as RealSimd>::Avx2::LANES <= MAX_LANES);
    assert!(<f32 as RealSimd>::Avx512::LANES <= MAX_LANES);
    assert!(<f64 as RealSimd>::Avx512::LANES <= MAX_LANES);
};

/// A register full of numbers of different rows.
///
/// Loads and stores read and write `LANES` consecutive values and need no alignment.
pub trait Vector: Copy {
    /// The number type of a lane.
    type Scalar: Real;
    /// The vector whose square blocks are transposed in registers.
    type Tile: Tile<Scalar = Self::Scalar>;
    /// Values per vector.
    const LANES: usize;
    /// Whether [`Self::fused`] rounds once.
    const FUSED: bool;

    /// # Safety
    /// `from` must be valid for reading `LANES` values, and the instruction set of the vector must be there.
    unsafe fn load(from: *const Self::Scalar) -> Self;
    /// # Safety
    /// `to` must be valid for writing `LANES` values.
    unsafe fn store(self, to: *mut Self::Scalar);
    /// The same number in every lane.
    ///
    /// # Safety
    /// The instruction set of the vector must be there.
    unsafe fn splat(value: Self::Scalar) -> Self;
    /// Another number in every lane.
    #[inline(always)]
    fn same(self, value: Self::Scalar) -> Self {
        // SAFETY: where there is a vector, there is its instruction set.
        unsafe { Self::splat(value) }
    }
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
    /// `a*b + c` of single values, rounded once where the instruction set can: for loops that the
    /// compiler turns into vectors itself.
    fn fused(a: Self::Scalar, b: Self::Scalar, c: Self::Scalar) -> Self::Scalar;
    /// [`Present::call`].
    ///
    /// # Safety
    /// The instruction set of the vector must be there.
    unsafe fn call<R>(work: impl FnOnce() -> R) -> R;
}

/// A vector whose square blocks can be transposed.
pub trait Tile: Vector {
    /// Reads the square block of rows `row(i)`, transposes it, and writes row `j` of the result to `column(j)`, in the
    /// order of `j`.
    ///
    /// # Safety
    /// `column(j)` must be valid for writing `LANES` values, none of which `row(i)` reads.
    unsafe fn transpose(
        row: impl FnMut(usize) -> Self,
        column: impl FnMut(usize) -> *mut Self::Scalar,
    );
    /// Lane `i` is the sum of the lanes of `row(i)`, which is called first.
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
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) -> Self::Output;
}

/// Proof that the processor has the instruction set of a vector.
#[derive(Debug, Clone, Copy)]
pub struct Present<V>(PhantomData<V>);

impl<V: Vector> Present<V> {
    /// # Safety
    /// The processor must have the instruction set of `V`.
    #[inline(always)]
    pub(crate) unsafe fn promised() -> Self {
        Self(PhantomData)
    }

    /// The same number in every lane.
    #[inline(always)]
    pub fn splat(self, value: V::Scalar) -> V {
        // SAFETY: this value is the proof.
        unsafe { V::splat(value) }
    }

    /// Runs `work`, which must be `#[inline(always)]`, as a function of its own with the features of
    /// this vector. A kernel of many variants is cut into such functions: the compiler's time grows
    /// faster than the length of a function.
    #[inline(always)]
    pub(crate) fn call<R>(self, work: impl FnOnce() -> R) -> R {
        // SAFETY: as above.
        unsafe { V::call(work) }
    }
}

/// A job with raw pointers, together with the promise that they are valid for all that the job does: what its fields say, and
/// nobody else writes there, or reads what it writes, until it is done.
pub struct Promised<J>(J);

impl<J> Promised<J> {
    /// # Safety
    /// The pointers of the job must be valid as its fields say, until it is done.
    #[inline(always)]
    pub(crate) unsafe fn new(job: J) -> Self {
        Self(job)
    }

    #[inline(always)]
    pub(crate) fn job(self) -> J {
        self.0
    }
}

/// An instruction set that this processor has. Nothing else makes one: every value comes from asking the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "portable", allow(dead_code, reason = "only one is made"))]
enum Set {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The environment variable that names the instruction set to use instead of the best one, for tests and comparisons.
pub const CHOICE: &str = "CIRCULANT_ISA";

/// The instruction set that the kernels use: `portable`, `avx2` or `avx512`.
///
/// It is the best one that the processor has, or the one that the environment variable `CIRCULANT_ISA` names when a kernel
/// first runs, if the processor has that. Products of large matrices and transforms of awkward lengths go through other
/// crates, which choose for themselves.
pub fn instruction_set() -> &'static str {
    Isa::best().name()
}

impl Isa {
    /// What every processor of the target has.
    pub const PORTABLE: Self = Self(Set::Portable);

    /// All that this processor has, the best one last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "only some targets have more than one")]
        let mut sets = vec![Self(Set::Portable)];
        #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                sets.push(Self(Set::Avx2));
                if is_x86_feature_detected!("avx512f") {
                    sets.push(Self(Set::Avx512));
                }
            }
        }
        sets
    }

    /// The best one, or the one that [`CHOICE`] names; asked for once.
    pub fn best() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            let sets = Self::available();
            let choice = std::env::var(CHOICE).ok();
            let chosen = sets
                .iter()
                .find(|set| Some(set.name()) == choice.as_deref());
            *chosen
                .or(sets.last())
                .expect("the portable set is always there")
        })
    }

    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
        }
    }

    /// Whether it multiplies and adds with one rounding.
    pub(crate) fn is_fused(self) -> bool {
        self.0 != Set::Portable
    }

    pub(crate) fn is_avx2(self) -> bool {
        self.name() == "avx2"
    }

    /// Lanes of a vector of `T`.
    pub fn lanes<T: Real>(self) -> usize {
        match self.0 {
            Set::Portable => <T::Portable as Vector>::LANES,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => <T::Avx2 as Vector>::LANES,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => <T::Avx512 as Vector>::LANES,
        }
    }

    pub fn run<T: Real, K: Kernel<T>>(self, kernel: K) -> K::Output {
        match self.0 {
            // SAFETY: the portable vectors are arrays.
            Set::Portable => kernel.run(unsafe { Present::<T::Portable>::promised() }),
            // SAFETY: an `Isa` value comes from `available`, which asked the processor.
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Set::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Set::Avx512 => unsafe { T::run_avx512(kernel) },
            #[cfg(all(target_arch = "x86_64", feature = "portable"))]
            Set::Avx2 | Set::Avx512 => unreachable!("`available` leaves them out"),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<T: Real, K: Kernel<T>>(kernel: K) -> K::Output {
    // SAFETY: this function is entered where AVX2 and FMA are there.
    kernel.run(unsafe { Present::<T::Avx2>::promised() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn run_avx512<T: Real, K: Kernel<T>>(kernel: K) -> K::Output {
    // SAFETY: this function is entered where AVX-512F, AVX2 and FMA are there.
    kernel.run(unsafe { Present::<T::Avx512>::promised() })
}
