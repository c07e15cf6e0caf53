//! Sums of cosines of multiples of an angle, without one call of `cos` per term.

/// Angles that turn together, so that the compiler uses vectors.
const LANES: usize = 8;

/// `sum_i cos(k angle_i)` for `k` in `0..terms`.
pub(super) fn sums_of_cosines(mut angles: impl Iterator<Item = f64>, terms: usize) -> Vec<f64> {
    let mut sums = vec![[0.0; LANES]; terms];
    loop {
        let mut count = 0;
        let lane: [f64; LANES] = std::array::from_fn(|_| {
            let angle = angles.next();
            count += usize::from(angle.is_some());
            angle.unwrap_or(0.0)
        });
        if count == 0 {
            break;
        }
        let mut turn = Rotations::new(lane);
        // A missing angle starts at the origin and stays there.
        turn.cosines[count..].fill(0.0);
        for sums in &mut sums {
            for (sum, cosine) in sums.iter_mut().zip(&turn.cosines) {
                *sum += cosine;
            }
            turn.step();
        }
    }
    sums.iter().map(|lane| lane.iter().sum()).collect()
}

/// `sum_k c_k cos(k angle)`.
pub(super) fn cosine_series(coefficients: &[f64], angle: f64) -> f64 {
    let mut turn = Rotations::new([angle]);
    let mut sum = 0.0;
    for coefficient in coefficients {
        sum += coefficient * turn.cosines[0];
        turn.step();
    }
    sum
}

/// Points on the circle that turn by their own angle at every step. Rounding grows with the number of
/// steps only, not with its square as in the recurrence of Chebyshev.
struct Rotations<const N: usize> {
    cosines: [f64; N],
    sines: [f64; N],
    step_cosines: [f64; N],
    step_sines: [f64; N],
}

impl<const N: usize> Rotations<N> {
    fn new(angles: [f64; N]) -> Self {
        Self {
            cosines: [1.0; N],
            sines: [0.0; N],
            step_cosines: angles.map(f64::cos),
            step_sines: angles.map(f64::sin),
        }
    }

    #[inline(always)]
    fn step(&mut self) {
        for i in 0..N {
            let (c, s) = (self.cosines[i], self.sines[i]);
            self.cosines[i] = c * self.step_cosines[i] - s * self.step_sines[i];
            self.sines[i] = s * self.step_cosines[i] + c * self.step_sines[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_angles() {
        let angles: Vec<f64> = (0..19).map(|i| f64::from(i) * 0.16).collect();
        let sums = sums_of_cosines(angles.iter().copied(), 300);
        for (k, sum) in sums.iter().enumerate() {
            let oracle: f64 = angles.iter().map(|angle| (k as f64 * angle).cos()).sum();
            assert!((sum - oracle).abs() < 1e-12, "{k}: {sum} {oracle}");
        }
        let series = cosine_series(&[0.5, 0.0, 2.0], 0.3);
        assert!((series - (0.5 + 2.0 * 0.6_f64.cos())).abs() < 1e-15);
    }
}
