//! The cosine transform of 8 x 8 blocks in integers, by Loeffler, Ligtenberg and Moschytz (1989), with
//! the rounding of libjpeg's accurate integer method: 13 bits after the point of a constant, 2 more bits
//! between the two passes.
//!
//! [`forward`] gives 8 times the orthonormal transform, [`inverse`] takes the orthonormal one.

/// Bits of a constant.
const CONSTANT: u32 = 13;
/// More bits between the passes.
const BETWEEN: u32 = 2;

const C_0_298: i32 = 2446;
const C_0_390: i32 = 3196;
const C_0_541: i32 = 4433;
const C_0_765: i32 = 6270;
const C_0_899: i32 = 7373;
const C_1_175: i32 = 9633;
const C_1_501: i32 = 12299;
const C_1_847: i32 = 15137;
const C_1_961: i32 = 16069;
const C_2_053: i32 = 16819;
const C_2_562: i32 = 20995;
const C_3_072: i32 = 25172;

fn rounded(x: i32, bits: u32) -> i32 {
    (x + (1 << (bits - 1))) >> bits
}

/// The part that both transforms share: four odd numbers in, four out.
fn odd([a, b, c, d]: [i32; 4]) -> [i32; 4] {
    let both = (a + c + b + d) * C_1_175;
    let ad = -(a + d) * C_0_899;
    let bc = -(b + c) * C_2_562;
    let ac = both - (a + c) * C_1_961;
    let bd = both - (b + d) * C_0_390;
    [
        a * C_0_298 + ad + ac,
        b * C_2_053 + bc + bd,
        c * C_3_072 + bc + ac,
        d * C_1_501 + ad + bd,
    ]
}

/// Rows, then columns.
pub(super) fn forward(block: &mut [i32; 64]) {
    for row in 0..8 {
        forward_line(block, row * 8, 1, |x| x << BETWEEN, CONSTANT - BETWEEN);
    }
    for column in 0..8 {
        forward_line(
            block,
            column,
            8,
            |x| rounded(x, BETWEEN),
            CONSTANT + BETWEEN,
        );
    }
}

fn forward_line(
    block: &mut [i32; 64],
    start: usize,
    stride: usize,
    whole: fn(i32) -> i32,
    bits: u32,
) {
    let x: [i32; 8] = std::array::from_fn(|i| block[start + i * stride]);
    let sum = |i: usize| x[i] + x[7 - i];
    let difference = |i: usize| x[i] - x[7 - i];
    let (outer, inner) = (sum(0) + sum(3), sum(1) + sum(2));
    let (outer_odd, inner_odd) = (sum(0) - sum(3), sum(1) - sum(2));
    let turned = (outer_odd + inner_odd) * C_0_541;
    let [seven, five, three, one] =
        odd([difference(3), difference(2), difference(1), difference(0)]);
    let line = [
        whole(outer + inner),
        rounded(one, bits),
        rounded(turned + outer_odd * C_0_765, bits),
        rounded(three, bits),
        whole(outer - inner),
        rounded(five, bits),
        rounded(turned - inner_odd * C_1_847, bits),
        rounded(seven, bits),
    ];
    for (i, value) in line.into_iter().enumerate() {
        block[start + i * stride] = value;
    }
}

/// Columns, then rows.
pub(super) fn inverse(block: &mut [i32; 64]) {
    for column in 0..8 {
        inverse_line(block, column, 8, CONSTANT - BETWEEN);
    }
    for row in 0..8 {
        inverse_line(block, row * 8, 1, CONSTANT + BETWEEN + 3);
    }
}

fn inverse_line(block: &mut [i32; 64], start: usize, stride: usize, bits: u32) {
    let x: [i32; 8] = std::array::from_fn(|i| block[start + i * stride]);
    let turned = (x[2] + x[6]) * C_0_541;
    let two = turned + x[2] * C_0_765;
    let six = turned - x[6] * C_1_847;
    let (sum, difference) = ((x[0] + x[4]) << CONSTANT, (x[0] - x[4]) << CONSTANT);
    let even = [sum + two, difference + six, difference - six, sum - two];
    let [seven, five, three, one] = odd([x[7], x[5], x[3], x[1]]);
    for (i, (even, odd)) in even.into_iter().zip([one, three, five, seven]).enumerate() {
        block[start + i * stride] = rounded(even + odd, bits);
        block[start + (7 - i) * stride] = rounded(even - odd, bits);
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    /// The orthonormal transform by its definition.
    fn definition(block: &[i32; 64]) -> [f64; 64] {
        let basis = |frequency: usize, place: usize| {
            let scale = if frequency == 0 { 0.125_f64 } else { 0.25 };
            scale.sqrt() * (PI * (2 * place + 1) as f64 * frequency as f64 / 16.0).cos()
        };
        std::array::from_fn(|i| {
            let term = |j: usize| f64::from(block[j]) * basis(i / 8, j / 8) * basis(i % 8, j % 8);
            (0..64).map(term).sum()
        })
    }

    #[test]
    fn equals_the_definition_and_comes_back() {
        for seed in 0..20_i32 {
            let block: [i32; 64] =
                std::array::from_fn(|i| (i as i32 * 53 + seed * 31) * 97 % 256 - 128);
            let expected = definition(&block);
            let mut found = block;
            forward(&mut found);
            for (found, expected) in found.iter().zip(expected) {
                // 8 times the transform, each rounded: an eighth of a step, twice.
                assert!(
                    (f64::from(*found) / 8.0 - expected).abs() < 0.25,
                    "{found} {expected}"
                );
            }
            let mut back = found.map(|x| rounded(x, 3));
            inverse(&mut back);
            let worst = block
                .iter()
                .zip(back)
                .map(|(a, b)| (a - b).abs())
                .max()
                .unwrap();
            assert!(worst <= 2, "{worst}");
        }
    }
}
