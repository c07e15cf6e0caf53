//! Numbers as people read them.

/// With a fixed number of digits and a true minus sign; a dash when there is nothing to show.
pub fn fixed(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "–".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude >= 1e9 {
        return scientific(value, 2);
    }
    let text = format!("{magnitude:.digits$}");
    if value < 0.0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
        format!("−{text}")
    } else {
        text
    }
}

/// The same with a sign in front, also of a positive number; a rounded zero has none.
pub fn signed(value: f64, digits: usize) -> String {
    let text = fixed(value, digits);
    if value > 0.0
        && text
            .chars()
            .any(|character| matches!(character, '1'..='9' | '∞'))
    {
        format!("+{text}")
    } else {
        text
    }
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1.5×10³⁰`; a mantissa of one is left out.
pub fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let power = format!("10{}", exponent.chars().map(raised).collect::<String>());
    match mantissa {
        "1" => power,
        "-1" => format!("−{power}"),
        _ => format!("{}×{power}", mantissa.replace('-', "−")),
    }
}

fn raised(character: char) -> char {
    match character {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '-' => '⁻',
        '4'..='9' => char::from_u32('⁴' as u32 + (character as u32 - '4' as u32)).unwrap_or('?'),
        _ => character,
    }
}

/// The label of a tick at `value` when ticks are `step` apart and none is larger than `largest`.
/// Thousands and up have a suffix (`20k`, `1.5M`), what is far outside is a power of ten.
pub fn tick(value: f64, step: f64, largest: f64) -> String {
    const SUFFIXES: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&largest) {
        return scientific(value, 2);
    }
    let (unit, suffix) = SUFFIXES
        .into_iter()
        .find(|&(unit, _)| largest >= 10.0 * unit || (largest >= unit && unit > 1e3))
        .unwrap_or((1.0, ""));
    let digits = digits(step / unit);
    format!("{}{suffix}", fixed(value / unit, digits))
}

/// Digits after the point that tell numbers `step` apart.
fn digits(step: f64) -> usize {
    (0..7)
        .find(|&digits| {
            let scaled = step * 10_f64.powi(digits as i32);
            scaled >= 0.999 && (scaled - scaled.round()).abs() < 1e-6 * scaled
        })
        .unwrap_or(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_what_is_no_number() {
        assert_eq!(fixed(-0.0004, 3), "0.000");
        assert_eq!(fixed(-0.5, 1), "−0.5");
        assert_eq!(fixed(f64::NAN, 3), "–");
        assert_eq!(fixed(f64::INFINITY, 3), "∞");
        assert_eq!(signed(0.0123, 3), "+0.012");
        assert_eq!(signed(0.0001, 3), "0.000");
        assert_eq!(signed(-2.0, 1), "−2.0");
        assert_eq!(scientific(1e-5, 2), "10⁻⁵");
        assert_eq!(scientific(-1.5e30, 2), "−1.5×10³⁰");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_205_898, "1,205,898"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(tick(0.25, 0.25, 1.0), "0.25");
        assert_eq!(tick(0.5, 0.5, 1.0), "0.5");
        assert_eq!(tick(400.0, 200.0, 1000.0), "400");
        assert_eq!(tick(1000.0, 200.0, 1000.0), "1000");
        assert_eq!(tick(20_000.0, 10_000.0, 50_000.0), "20k");
        assert_eq!(tick(1_500_000.0, 500_000.0, 2_000_000.0), "1.5M");
        assert_eq!(tick(1e-7, 1e-7, 3e-7), "10⁻⁷");
    }
}
