//! The runtime in integers: 32 bits with 16 behind the point, products of codes and of 16 bits, tanh from a table.

use circulant_core::Fixed;
use circulant_core::random::FRACTION_BITS;

use crate::number::Number;
use crate::values::share_of;

/// `16384 tanh(i/32)` up to 5, and one more.
static TANH: [i16; 162] = [
    0, 512, 1023, 1532, 2037, 2539, 3036, 3528, 4013, 4490, 4960, 5420, 5871, 6312, 6743, 7163,
    7571, 7968, 8353, 8726, 9087, 9435, 9771, 10095, 10406, 10706, 10993, 11269, 11533, 11785,
    12027, 12258, 12478, 12688, 12888, 13078, 13260, 13432, 13595, 13751, 13898, 14038, 14171,
    14296, 14415, 14528, 14634, 14735, 14830, 14920, 15005, 15085, 15161, 15232, 15300, 15363,
    15423, 15480, 15533, 15584, 15631, 15676, 15718, 15757, 15795, 15830, 15863, 15894, 15923,
    15951, 15977, 16001, 16024, 16046, 16066, 16085, 16103, 16120, 16136, 16151, 16165, 16178,
    16190, 16202, 16213, 16223, 16233, 16242, 16251, 16259, 16266, 16273, 16280, 16286, 16292,
    16298, 16303, 16308, 16312, 16317, 16321, 16325, 16328, 16332, 16335, 16338, 16341, 16343,
    16346, 16348, 16350, 16352, 16354, 16356, 16358, 16359, 16361, 16362, 16363, 16365, 16366,
    16367, 16368, 16369, 16370, 16371, 16372, 16372, 16373, 16374, 16374, 16375, 16375, 16376,
    16376, 16377, 16377, 16378, 16378, 16378, 16379, 16379, 16379, 16380, 16380, 16380, 16380,
    16381, 16381, 16381, 16381, 16381, 16382, 16382, 16382, 16382, 16382, 16382, 16382, 16382,
    16383, 16383,
];

/// `2^16 2^(-i/16)`, the first one less by one.
static SHARES: [u16; 16] = {
    let mut shares = [u16::MAX; 16];
    let mut code = 1;
    while code < shares.len() {
        shares[code] = (65536.0 * share_of(code as u8) + 0.5) as u16;
        code += 1;
    }
    shares
};

/// `value * factor / 2^16`, cut off, without a product of 64 bits.
#[inline(always)]
fn times(value: i32, factor: u16) -> i32 {
    let low = (value as u32 & 0xffff) * u32::from(factor);
    let high = (value >> 16).wrapping_mul(factor.into());
    high.wrapping_add((low >> 16) as i32)
}

/// `value * 2^bits`, nearest or saturated, without arithmetic of floats.
fn rounded(value: f32, bits: i32) -> i32 {
    let word = value.to_bits();
    let exponent = (word >> 23 & 0xff) as i32;
    if exponent == 0 {
        return 0;
    }
    let mantissa = (word & 0x007f_ffff | 0x0080_0000) as i32;
    let shift = exponent - 150 + bits;
    let size = match shift {
        ..-24 => 0,
        -24..0 => (mantissa + (1 << (-shift - 1))) >> -shift,
        0..8 => mantissa << shift,
        _ => i32::MAX,
    };
    if word >> 31 == 0 { size } else { -size }
}

impl Number for Fixed {
    /// Its rounding errors are no part of a file.
    const CERTIFIED: bool = false;
    const FRACTION: u32 = 14;

    fn single(value: f32) -> Self {
        Self::from_bits(rounded(value, 16))
    }

    fn to_single(self) -> f32 {
        self.to_bits() as f32 * (1.0 / 65536.0)
    }

    #[inline(always)]
    fn normal(integer: i32) -> Self {
        Self::from_bits(integer << (Self::FRACTION_BITS - FRACTION_BITS))
    }

    fn pixel(byte: u8, scale: f32, offset: f32) -> Self {
        let scaled = i32::from(byte).wrapping_mul(rounded(scale, 22)) >> 6;
        Self::from_bits(scaled) + Self::single(offset)
    }

    #[inline(always)]
    fn times_code(self, code: i8) -> Self {
        Self::from_bits(self.to_bits().wrapping_mul(code.into()))
    }

    fn of_sum(sum: i32, scale: f32) -> Self {
        Self::from_bits(sum).scaled(65536.0 * scale)
    }

    fn scaled(self, scale: f32) -> Self {
        let word = scale.to_bits();
        let exponent = (word >> 23 & 0xff) as i32;
        let mantissa = (word >> 8 & 0x7fff | 0x8000) as u16;
        // The product has the weight 2^(e + 1).
        let product = times(self.to_bits(), mantissa);
        let shift = exponent - 126;
        let scaled = match shift {
            0..31 => i64::from(product) << shift,
            -31..0 => i64::from(product >> -shift),
            31.. => i64::from(product).signum() * i64::from(i32::MAX),
            _ => 0,
        };
        let scaled = Self::nearest(scaled);
        if word >> 31 == 0 { scaled } else { -scaled }
    }

    #[inline]
    fn share(self, code: u8) -> Self {
        let share = SHARES[usize::from(code & 15)];
        Self::from_bits(times(self.to_bits(), share) >> (code >> 4))
    }

    #[inline]
    fn fraction_of(self, share: u16) -> Self {
        Self::nearest((i64::from(self.to_bits()) * i64::from(share)) >> 14)
    }

    fn divided(self, by: usize) -> Self {
        let by = i32::try_from(by).unwrap_or(i32::MAX);
        Self::from_bits(self.to_bits().checked_div(by).unwrap_or(0))
    }

    fn tanh(self) -> Self {
        let size = self.to_bits().unsigned_abs();
        let place = (size >> 11) as usize;
        let tanh = match TANH.get(place..).and_then(<[i16]>::first_chunk) {
            Some([low, high]) => {
                let (low, high) = (i32::from(*low), i32::from(*high));
                // Four times as fine as the table.
                4 * low + (((high - low) * (size & 0x7ff) as i32) >> 9)
            }
            None => 4 * i32::from(TANH[TANH.len() - 1]),
        };
        Self::from_bits(if self.to_bits() < 0 { -tanh } else { tanh })
    }

    #[inline]
    fn coarse_tanh(self) -> Self {
        self.tanh()
    }

    fn fraction(self, factor: f32) -> i32 {
        self.scaled(factor).to_bits() >> 16
    }

    /// With 24 bits behind the point.
    #[inline]
    fn fine_product(self, other: Self) -> Self {
        Self::nearest((i64::from(self.to_bits()) * i64::from(other.to_bits())) >> 8)
    }

    fn fine_root(self) -> Self {
        let square = u64::from(self.to_bits().max(0) as u32) << 8;
        Self::from_bits(square.isqrt() as i32)
    }

    fn fine_quotient(self, by: Self) -> Self {
        let quotient = (i64::from(self.to_bits()) << 8).checked_div(by.to_bits().into());
        Self::nearest(quotient.unwrap_or(0))
    }

    fn is_sound(self) -> bool {
        true
    }

    fn hold(value: f32) -> Self {
        Self::from_bits(value.to_bits() as i32)
    }

    fn held(self) -> f32 {
        f32::from_bits(self.to_bits() as u32)
    }

    #[inline(always)]
    fn keep(integer: i32) -> Self {
        Self::from_bits(integer)
    }

    #[inline(always)]
    fn kept(self) -> i32 {
        self.to_bits()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use circulant_core::Scalar;

    use super::*;

    /// Half a unit in the last place, and what cutting off loses.
    const UNIT: f64 = 1.0 / 65536.0;

    #[test]
    fn floats_are_rounded_to_the_nearest() {
        for value in [
            0.0, 1.0, -1.0, 0.3, -7.77, 1e-5, -2e-6, 1e-30, 300.25, 32000.7,
        ] {
            let found = Fixed::single(value).wide();
            assert!(
                (found - f64::from(value)).abs() <= 0.5 * UNIT,
                "{value}: {found}"
            );
            assert_eq!(Fixed::single(value).to_single(), found as f32);
        }
        assert_eq!(Fixed::single(1e9).to_bits(), i32::MAX);
        assert_eq!(Fixed::held(Fixed::hold(-0.1)), -0.1);
    }

    #[test]
    fn products_with_codes_scales_and_shares_are_those_of_reals() {
        for value in [-3.7, -0.01, 0.0, 0.4, 2.9] {
            let fixed = Fixed::of(value);
            for scale in [1e-4_f32, 0.003, 0.5, 1.0, 7.3, -0.25] {
                let (found, exact) = (fixed.scaled(scale).wide(), fixed.wide() * f64::from(scale));
                let error = (2.0 * UNIT).max(4.0 * UNIT * f64::from(scale.abs()));
                let relative = exact.abs() / 32768.0;
                assert!(
                    (found - exact).abs() <= error + relative,
                    "{value} {scale}: {found}"
                );
            }
            for code in [0_u8, 1, 15, 16, 100] {
                let exact = fixed.wide() * (-f64::from(code) / 16.0).exp2();
                let error = (fixed.share(code).wide() - exact).abs();
                assert!(
                    error <= 3.0 * UNIT + exact.abs() / 65536.0,
                    "{value} {code}: {error}"
                );
            }
            assert_eq!(fixed.times_code(-5).wide(), -5.0 * fixed.wide());
        }
        assert_eq!(Fixed::of(0.5).fraction(16384.0), 8192);
    }

    #[test]
    fn tanh_is_within_two_ten_thousandths() {
        for step in -70_000..70_000 {
            let x = Fixed::from_bits(step * 7);
            let error = (x.tanh().wide() - x.wide().tanh()).abs();
            assert!(error < 2e-4, "{}: {error}", x.wide());
        }
        assert!((Fixed::from_bits(i32::MIN).tanh().wide() + 1.0).abs() < 2e-4);
    }

    #[test]
    fn fine_products_have_roots_and_quotients() {
        let (a, b) = (Fixed::of(0.37), Fixed::of(0.12));
        assert!((a.fine_product(a).fine_root().wide() - a.wide()).abs() <= UNIT);
        assert!((a.fine_product(b).fine_quotient(a).wide() - b.wide()).abs() <= 2.0 * UNIT);
    }
}
