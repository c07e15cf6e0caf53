extern crate std;

use super::*;

#[test]
fn every_grid_has_as_many_coordinates_as_pixels() {
    for height in 1..20 {
        for width in 1..20 {
            let layout = HalfPlane::new(height, width).expect("valid");
            assert_eq!(layout.coordinates(), height * width, "{height} x {width}");
            let total: usize = (0..layout.bins())
                .map(|i| layout.multiplicity(i / layout.columns(), i % layout.columns()))
                .sum();
            assert_eq!(total, height * width);
        }
    }
}

#[test]
fn a_row_has_the_bins_of_its_signal() {
    for length in 1..40 {
        for modes in 1..=length / 2 + 1 {
            let half = HalfSpectrum::with_modes(length, modes).expect("valid");
            let row = HalfPlane::of_signal(&half).expect("valid");
            assert!(row.iter().eq(half.iter()), "{length}, {modes}");
            assert_eq!(row.coordinates(), half.coordinates());
        }
    }
}

#[test]
fn masks_keep_conjugate_pairs_together() {
    for (height, width) in [(1, 1), (4, 6), (5, 7), (8, 3), (7, 8)] {
        for cutoff in [0.0, 0.3, 0.5, 0.8, 1.0] {
            let layout = HalfPlane::with_radius(height, width, cutoff).expect("valid");
            // Every pixel of the full plane inside the radius is one real degree of freedom.
            let farthest = layout.radius(height / 2, width / 2);
            let inside = (0..height * width)
                .filter(|i| layout.radius(i / width, i % width) <= cutoff * farthest)
                .count();
            assert_eq!(layout.coordinates(), inside, "{height} x {width}, {cutoff}");
        }
    }
}

/// The bins and the number of coordinates, from the definition: a walk over the stored bins.
fn by_definition(
    [height, width]: [usize; 2],
    cutoff: f64,
    hypot: fn(f64, f64) -> f64,
) -> (std::vec::Vec<Bin>, usize) {
    let columns = width / 2 + 1;
    let radius = |u: usize, v: usize| hypot(wrapped_radius(u, height), wrapped_radius(v, width));
    let farthest = radius(height / 2, width / 2);
    let mut bins: std::vec::Vec<Bin> = std::vec::Vec::new();
    let mut coordinates = 0;
    for u in 0..height {
        for v in 0..columns {
            let paired = v == 0 || 2 * v == width;
            let coordinate = coordinates;
            bins.push(if radius(u, v) > cutoff * farthest {
                Bin::Masked
            } else if paired && (u == 0 || 2 * u == height) {
                coordinates += 1;
                Bin::Real { coordinate }
            } else if paired && 2 * u > height {
                bins[(height - u) * columns + v].opposite()
            } else {
                coordinates += 2;
                Bin::Complex { coordinate }
            });
        }
    }
    (bins, coordinates)
}

#[test]
fn bins_follow_the_definition_walked_and_at_random() {
    for height in 1..34 {
        for width in 1..34 {
            for cutoff in (0..=20).map(|i| f64::from(i) / 20.0) {
                let layout = HalfPlane::with_radius(height, width, cutoff).expect("valid");
                let grid = [height, width];
                let (bins, coordinates) = by_definition(grid, cutoff, f64::hypot);
                // A mask is the same on a device, where the radius may differ in the last place.
                assert!(bins == by_definition(grid, cutoff, libm::hypot).0);
                assert_eq!(layout.coordinates(), coordinates);
                let what = (height, width, cutoff);
                assert!(layout.iter().eq(bins.iter().copied()), "{what:?}");
                for (i, bin) in bins.iter().enumerate() {
                    let (u, v) = (i / layout.columns(), i % layout.columns());
                    assert_eq!(layout.bin(u, v), *bin, "{what:?}, {u}, {v}");
                }
            }
        }
    }
}

#[test]
fn sizes_beyond_memory_are_errors() {
    for (height, width) in [(usize::MAX, 3), (1 << 40, 1 << 40), (1, usize::MAX)] {
        let error = HalfPlane::new(height, width).unwrap_err();
        assert!(matches!(error, SizeError::TooLarge { .. }), "{error}");
    }
}

#[test]
fn wrong_sizes_are_errors() {
    assert!(HalfPlane::new(0, 3).is_err());
    assert!(HalfPlane::new(3, 0).is_err());
    for cutoff in [-0.1, 1.1, f64::NAN] {
        assert!(HalfPlane::with_radius(4, 4, cutoff).is_err());
    }
}
