//! AVX2 + FMA and AVX-512F vectors.
//!
//! `unsafe`: the intrinsics may only run on a processor that has the instruction set. Whoever makes a vector
//! promises that, and a vector that is there is the proof; see the module above.

use std::arch::x86_64::*;

use super::{Tile, Vector};

macro_rules! vector {
    ($name:ident, $register:ty, $scalar:ty, $tile:ty, $lanes:literal, $doc:literal,
     $load:ident, $store:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident, $div:ident,
     $min:ident, $max:ident, $fma:ident, $fnma:ident, $features:literal,
     |$register_name:ident| $folded:expr) => {
        #[doc = $doc]
        #[derive(Clone, Copy)]
        pub struct $name($register);

        // SAFETY of every block below: the instruction set is there (see the head of the file);
        // loads and stores pass the caller's promise on.
        #[allow(clippy::undocumented_unsafe_blocks)]
        impl Vector for $name {
            type Scalar = $scalar;
            type Tile = $tile;
            const LANES: usize = $lanes;
            const FUSED: bool = true;

            #[inline(always)]
            unsafe fn load(from: *const $scalar) -> Self {
                Self(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $scalar) {
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn splat(value: $scalar) -> Self {
                Self(unsafe { $splat(value) })
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self(unsafe { $sub(self.0, other.0) })
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                Self(unsafe { $div(self.0, other.0) })
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Self(unsafe { $min(self.0, other.0) })
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Self(unsafe { $max(self.0, other.0) })
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                Self(unsafe { $fma(self.0, factor.0, addend.0) })
            }
            #[inline(always)]
            fn neg_mul_add(self, factor: Self, addend: Self) -> Self {
                Self(unsafe { $fnma(self.0, factor.0, addend.0) })
            }
            #[inline(always)]
            fn folded(self) -> $tile {
                let $register_name = self.0;
                $folded
            }
            #[inline(always)]
            fn fused(a: $scalar, b: $scalar, c: $scalar) -> $scalar {
                a.mul_add(b, c)
            }
            #[inline(always)]
            unsafe fn call<R>(work: impl FnOnce() -> R) -> R {
                #[target_feature(enable = $features)]
                #[inline(never)]
                fn enter<R>(work: impl FnOnce() -> R) -> R {
                    work()
                }
                unsafe { enter(work) }
            }
        }
    };
}

vector!(
    F32x8,
    __m256,
    f32,
    F32x8,
    8,
    "Eight f32 in an AVX register.",
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_set1_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_div_ps,
    _mm256_min_ps,
    _mm256_max_ps,
    _mm256_fmadd_ps,
    _mm256_fnmadd_ps,
    "avx2,fma",
    |register| Self(register)
);
vector!(
    F64x4,
    __m256d,
    f64,
    F64x4,
    4,
    "Four f64 in an AVX register.",
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_set1_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_div_pd,
    _mm256_min_pd,
    _mm256_max_pd,
    _mm256_fmadd_pd,
    _mm256_fnmadd_pd,
    "avx2,fma",
    |register| Self(register)
);
// A wide register is filled by two tiles of half the width.
vector!(
    F32x16,
    __m512,
    f32,
    F32x8,
    16,
    "Sixteen f32 in an AVX-512 register.",
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_set1_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_div_ps,
    _mm512_min_ps,
    _mm512_max_ps,
    _mm512_fmadd_ps,
    _mm512_fnmadd_ps,
    "avx512f,avx2,fma",
    |register| unsafe {
        let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(register));
        F32x8(_mm256_add_ps(
            _mm512_castps512_ps256(register),
            _mm256_castpd_ps(high),
        ))
    }
);
impl Tile for F32x8 {
    #[inline(always)]
    unsafe fn transpose(
        mut row: impl FnMut(usize) -> Self,
        mut column: impl FnMut(usize) -> *mut f32,
    ) {
        // SAFETY: AVX is there; the caller promises the memory.
        unsafe {
            let (r0, r1, r2, r3) = (row(0).0, row(1).0, row(2).0, row(3).0);
            let (r4, r5, r6, r7) = (row(4).0, row(5).0, row(6).0, row(7).0);
            let (a0, a1) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
            let (a2, a3) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
            let (a4, a5) = (_mm256_unpacklo_ps(r4, r5), _mm256_unpackhi_ps(r4, r5));
            let (a6, a7) = (_mm256_unpacklo_ps(r6, r7), _mm256_unpackhi_ps(r6, r7));
            let (b0, b1) = (
                _mm256_shuffle_ps::<0x44>(a0, a2),
                _mm256_shuffle_ps::<0xee>(a0, a2),
            );
            let (b2, b3) = (
                _mm256_shuffle_ps::<0x44>(a1, a3),
                _mm256_shuffle_ps::<0xee>(a1, a3),
            );
            let (b4, b5) = (
                _mm256_shuffle_ps::<0x44>(a4, a6),
                _mm256_shuffle_ps::<0xee>(a4, a6),
            );
            let (b6, b7) = (
                _mm256_shuffle_ps::<0x44>(a5, a7),
                _mm256_shuffle_ps::<0xee>(a5, a7),
            );
            let lows = [(b0, b4), (b1, b5), (b2, b6), (b3, b7)];
            for (j, (low, high)) in lows.into_iter().enumerate() {
                _mm256_storeu_ps(column(j), _mm256_permute2f128_ps::<0x20>(low, high));
            }
            for (j, (low, high)) in lows.into_iter().enumerate() {
                _mm256_storeu_ps(column(j + 4), _mm256_permute2f128_ps::<0x31>(low, high));
            }
        }
    }

    #[inline(always)]
    fn sums(mut row: impl FnMut(usize) -> Self) -> Self {
        // SAFETY: AVX is there.
        unsafe {
            let (a, b) = (
                _mm256_hadd_ps(row(0).0, row(1).0),
                _mm256_hadd_ps(row(2).0, row(3).0),
            );
            let (c, d) = (
                _mm256_hadd_ps(row(4).0, row(5).0),
                _mm256_hadd_ps(row(6).0, row(7).0),
            );
            let (low, high) = (_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            Self(_mm256_add_ps(
                _mm256_permute2f128_ps::<0x20>(low, high),
                _mm256_permute2f128_ps::<0x31>(low, high),
            ))
        }
    }
}

impl Tile for F64x4 {
    #[inline(always)]
    unsafe fn transpose(
        mut row: impl FnMut(usize) -> Self,
        mut column: impl FnMut(usize) -> *mut f64,
    ) {
        // SAFETY: AVX is there; the caller promises the memory.
        unsafe {
            let (r0, r1, r2, r3) = (row(0).0, row(1).0, row(2).0, row(3).0);
            let (a0, a1) = (_mm256_unpacklo_pd(r0, r1), _mm256_unpackhi_pd(r0, r1));
            let (a2, a3) = (_mm256_unpacklo_pd(r2, r3), _mm256_unpackhi_pd(r2, r3));
            _mm256_storeu_pd(column(0), _mm256_permute2f128_pd::<0x20>(a0, a2));
            _mm256_storeu_pd(column(1), _mm256_permute2f128_pd::<0x20>(a1, a3));
            _mm256_storeu_pd(column(2), _mm256_permute2f128_pd::<0x31>(a0, a2));
            _mm256_storeu_pd(column(3), _mm256_permute2f128_pd::<0x31>(a1, a3));
        }
    }

    #[inline(always)]
    fn sums(mut row: impl FnMut(usize) -> Self) -> Self {
        // SAFETY: AVX is there.
        unsafe {
            let (low, high) = (
                _mm256_hadd_pd(row(0).0, row(1).0),
                _mm256_hadd_pd(row(2).0, row(3).0),
            );
            Self(_mm256_add_pd(
                _mm256_permute2f128_pd::<0x20>(low, high),
                _mm256_permute2f128_pd::<0x31>(low, high),
            ))
        }
    }
}
