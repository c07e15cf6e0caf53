//! Zooming into the middle, and the corruption `zoom_blur`.
//!
//! A zoom by `z` takes the `ceil(size / z)` pixels in the middle, makes `round(z ceil(size / z))` of
//! them by linear interpolation between the outer pixels (`scipy.ndimage.zoom`, order 1), and cuts the
//! middle `size`. `zoom_blur` is the mean of the picture and of its zooms by 1, 1.01, ...

use super::Operation;
use super::corruption::Severity;
use super::picture::byte_of_single;

/// Where a number of a zoomed line comes from: a place, the next one, and the weight of the next one.
#[derive(Clone, Copy)]
struct Source {
    place: usize,
    next: usize,
    weight: f64,
}

/// A zoom of a plane of fixed size.
pub(super) struct Zoom {
    rows: Vec<Source>,
    columns: Vec<Source>,
}

impl Zoom {
    /// A zoom by `factor >= 1`.
    pub fn new(height: usize, width: usize, factor: f64) -> Self {
        Self {
            rows: line(height, factor),
            columns: line(width, factor),
        }
    }

    /// Calls `f` with every number of the zoomed plane, in order.
    pub fn each(&self, values: &[f64], mut f: impl FnMut(usize, f64)) {
        let width = self.columns.len();
        for (row, y) in self.rows.iter().enumerate() {
            let upper = &values[y.place * width..][..width];
            let lower = &values[y.next * width..][..width];
            for (column, x) in self.columns.iter().enumerate() {
                let value = upper[x.place] * (1.0 - y.weight) * (1.0 - x.weight)
                    + upper[x.next] * (1.0 - y.weight) * x.weight
                    + lower[x.place] * y.weight * (1.0 - x.weight)
                    + lower[x.next] * y.weight * x.weight;
                f(row * width + column, value);
            }
        }
    }
}

/// The sources of a line of `size` numbers.
fn line(size: usize, factor: f64) -> Vec<Source> {
    let taken = (size as f64 / factor).ceil() as usize;
    let made = (taken as f64 * factor).round_ties_even() as usize;
    let (before, cut) = ((size - taken) / 2, (made - size) / 2);
    let step = (taken - 1) as f64 / (made - 1).max(1) as f64;
    let source = |place: usize| {
        // Rounding may lead an ulp beyond the last pixel.
        let place = ((place + cut) as f64 * step).min((taken - 1) as f64);
        let whole = place as usize;
        Source {
            place: before + whole,
            next: before + (whole + 1).min(taken - 1),
            weight: place - whole as f64,
        }
    };
    (0..size).map(source).collect()
}

pub(super) fn zoom_blur(severity: Severity, [height, width]: [usize; 2]) -> Operation {
    let end = severity.of([1.06, 1.11, 1.16, 1.21, 1.26]);
    let zooms = factors(end).map(|factor| Zoom::new(height, width, factor));
    let zooms: Vec<Zoom> = zooms.collect();
    Box::new(move |picture, _, output| {
        for (plane, output) in picture.planes(output) {
            let plane = plane.single();
            let mut sums = vec![0_f32; plane.values.len()];
            for zoom in &zooms {
                zoom.each(&plane.values, |pixel, value| sums[pixel] += value as f32);
            }
            let count = (zooms.len() + 1) as f32;
            for ((output, sum), value) in output.iter_mut().zip(sums).zip(plane.values) {
                *output = byte_of_single((value as f32 + sum) / count);
            }
        }
    })
}

/// `numpy.arange(1, end, 0.01)`, whose rounding may include `end`.
fn factors(end: f64) -> impl Iterator<Item = f64> {
    let count = ((end - 1.0) / 0.01).ceil() as usize;
    let step = (1.0 + 0.01) - 1.0;
    (0..count).map(move |i| 1.0 + i as f64 * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_is_stretched_about_its_middle() {
        let (height, width) = (32, 32);
        let values: Vec<f64> = (0..height * width).map(|i| (i % width) as f64).collect();
        for factor in [1.0, 1.01, 1.13, 1.25, 1.75, 2.25] {
            let mut zoomed = vec![0.0; height * width];
            Zoom::new(height, width, factor).each(&values, |pixel, value| zoomed[pixel] = value);
            let row = &zoomed[5 * width..][..width];
            let taken = (32.0 / factor).ceil();
            let made = (taken * factor).round_ties_even();
            let step = (taken - 1.0) / (made - 1.0);
            for pair in row.windows(2) {
                assert!((pair[1] - pair[0] - step).abs() < 1e-12, "{factor}");
            }
            let middle = (row[15] + row[16]) / 2.0;
            assert!((middle - 15.5).abs() < 1.0, "{factor}: {middle}");
        }
    }

    #[test]
    fn factors_are_numpys() {
        let counts: Vec<usize> = [1.06, 1.11, 1.16, 1.21, 1.26]
            .map(|end| factors(end).count())
            .into();
        assert_eq!(counts, [7, 12, 16, 21, 26]);
        assert_eq!(factors(1.26).nth(25).unwrap(), 1.2500000000000002);
    }
}
