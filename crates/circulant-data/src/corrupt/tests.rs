//! Laws that hold for every corruption.

use super::super::labels::Labels;
use super::*;

/// What an operation makes of a picture `[3, height, width]`.
pub(super) fn applied(
    operation: &Operation,
    bytes: &[u8],
    [height, width]: [usize; 2],
    seed: u64,
) -> Vec<u8> {
    let picture = Picture {
        bytes,
        height,
        width,
    };
    let mut output = vec![0; bytes.len()];
    operation(&picture, &mut Random::new(seed, [0; 3]), &mut output);
    output
}

pub(super) fn bytes(set: &ImageSet) -> &[u8] {
    match set.pixels() {
        Pixels::U8(bytes) => bytes,
        Pixels::F32(_) => panic!("bytes"),
    }
}

/// Pictures with large and small things in all colours: waves, an edge and a box.
pub(super) fn pictures(count: usize, height: usize, width: usize) -> ImageSet {
    let mut pixels = Vec::with_capacity(count * 3 * height * width);
    for index in 0..count {
        let mut random = Random::new(77, [0, 0, index as u64]);
        let phase = random.range(0.0, 6.0);
        let slope = random.range(0.5, 2.0);
        for channel in 0..3 {
            let level = random.range(60.0, 170.0);
            for row in 0..height {
                for column in 0..width {
                    let (y, x) = (
                        row as f64 * 32.0 / height as f64,
                        column as f64 * 32.0 / width as f64,
                    );
                    let wave = 35.0 * (0.3 * x + 0.2 * y + phase + channel as f64).sin();
                    let detail = 12.0 * (1.9 * x - phase).cos() * (1.3 * y).sin();
                    let edge = if x * slope > y { 40.0 } else { -20.0 };
                    let in_box = (10.0..20.0).contains(&x) && (8.0..24.0).contains(&y);
                    let inside = if in_box { 35.0 } else { 0.0 };
                    pixels.push((level + wave + detail + edge + inside).clamp(0.0, 255.0) as u8);
                }
            }
        }
    }
    let labels = Labels::numbered((0..count as i64).collect());
    let shape = [count, 3, height, width];
    ImageSet::new(Pixels::U8(pixels), shape, labels, "drawn").unwrap()
}

fn unlabelled(pixels: Pixels, shape: [usize; 4]) -> ImageSet {
    ImageSet::new(pixels, shape, Labels::default(), "unlabelled").unwrap()
}

fn on_threads(threads: usize, set: &ImageSet, corruption: Corruption, seed: u64) -> ImageSet {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(|| corrupt(set, corruption, Severity::ALL[2], seed).unwrap())
}

/// Root mean squared distance in bytes.
fn distance(a: &ImageSet, b: &ImageSet) -> f64 {
    let pairs = bytes(a).iter().zip(bytes(b));
    let sum: f64 = pairs
        .map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2))
        .sum();
    (sum / bytes(a).len() as f64).sqrt()
}

const WITHOUT_CHANCE: [Corruption; 8] = [
    Corruption::DefocusBlur,
    Corruption::ZoomBlur,
    Corruption::Brightness,
    Corruption::Contrast,
    Corruption::Pixelate,
    Corruption::JpegCompression,
    Corruption::GaussianBlur,
    Corruption::Saturate,
];

#[test]
fn the_seed_decides_and_threads_do_not() {
    let set = pictures(12, 32, 32);
    for corruption in Corruption::ALL {
        let one = on_threads(1, &set, corruption, 5);
        assert_eq!(one, on_threads(3, &set, corruption, 5), "{corruption}");
        let few = on_threads(2, &set.first(4), corruption, 5);
        assert_eq!(bytes(&one.first(4)), bytes(&few), "{corruption}");
        let other = on_threads(2, &set, corruption, 6);
        let same = bytes(&one) == bytes(&other);
        assert_eq!(same, WITHOUT_CHANCE.contains(&corruption), "{corruption}");
        assert_eq!(one.labels(), set.labels());
        assert!(one.source().contains(corruption.name()));
    }
}

#[test]
fn pictures_of_one_set_get_different_draws() {
    let one = pictures(1, 32, 32);
    let set = unlabelled(Pixels::U8(bytes(&one).repeat(2)), [2, 3, 32, 32]);
    for corruption in Corruption::ALL {
        let corrupted = corrupt(&set, corruption, Severity::ALL[4], 1).unwrap();
        let (first, second) = bytes(&corrupted).split_at(one.row());
        let without_chance = WITHOUT_CHANCE.contains(&corruption);
        assert_eq!(first == second, without_chance, "{corruption}");
    }
}

/// Where the published parameters grow, so does the distance from the clean pictures. They do not grow
/// in this measure for: glass blur (less smoothing at 4, more copies), frost (more ice, but the picture
/// beneath fades), saturate (less, then more), spatter (water, then mud), elastic (less affine, more local).
#[test]
fn distances_grow_with_severity() {
    let set = pictures(60, 32, 32);
    for corruption in Corruption::ALL {
        let far = |severity| distance(&set, &corrupt(&set, corruption, severity, 3).unwrap());
        let distances = Severity::ALL.map(far);
        assert!(distances[0] > 0.3, "{corruption}: {distances:?}");
        let grows = match corruption {
            Corruption::GlassBlur
            | Corruption::Frost
            | Corruption::Saturate
            | Corruption::Spatter
            | Corruption::ElasticTransform => true,
            // A longer line of the same Gaussian, as of motion blur from 3 to 4, may be no farther.
            _ => distances.windows(2).all(|pair| pair[1] > 0.98 * pair[0]),
        };
        assert!(grows, "{corruption}: {distances:?}");
    }
}

#[test]
fn any_size_and_any_content_is_corrupted() {
    const HEIGHTS: [usize; 8] = [1, 1, 2, 3, 7, 28, 33, 64];
    const WIDTHS: [usize; 8] = [1, 5, 2, 2, 20, 28, 17, 96];
    for (height, width) in HEIGHTS.into_iter().zip(WIDTHS) {
        let set = pictures(2, height, width);
        let flat = |value| unlabelled(Pixels::U8(vec![value; bytes(&set).len()]), set.shape());
        for set in [set.clone(), flat(0), flat(255)] {
            for corruption in Corruption::ALL {
                for severity in Severity::ALL {
                    let corrupted = corrupt(&set, corruption, severity, 1).unwrap();
                    assert_eq!(corrupted.shape(), set.shape());
                }
            }
        }
    }
}

#[test]
fn other_kinds_of_pictures_are_refused_with_a_way_out() {
    let refuse = |pixels, channels| {
        let set = unlabelled(pixels, [1, channels, 2, 2]);
        corrupt(&set, Corruption::Fog, Severity::ALL[0], 1)
            .unwrap_err()
            .to_string()
    };
    let grey = refuse(Pixels::U8(vec![0; 4]), 1);
    assert!(
        grey.contains("[1, 1, 2, 2]") && grey.contains("three times"),
        "{grey}"
    );
    let floats = refuse(Pixels::F32(vec![0.0; 12]), 3);
    assert!(
        floats.contains("floats") && floats.contains("uint8"),
        "{floats}"
    );
}

/// `bench/fixtures/corruptions.py` makes the file with the libraries of the published program and the
/// same random numbers: one picture, all corruptions but frost, clean and five severities.
#[test]
fn equal_to_the_libraries_of_the_published_program() {
    let reference = image::load_from_memory(include_bytes!("tests/reference.png"))
        .unwrap()
        .into_rgb8();
    let cell = |row: usize, column: usize| -> Vec<u8> {
        let pixels = |channel: usize| {
            let reference = &reference;
            let place = move |i: usize| ((column * 32 + i % 32) as u32, (row * 32 + i / 32) as u32);
            (0..1024).map(move |i| reference.get_pixel(place(i).0, place(i).1).0[channel])
        };
        (0..3).flat_map(pixels).collect()
    };
    let set = unlabelled(Pixels::U8(cell(0, 0)), [1, 3, 32, 32]);
    let others = Corruption::ALL
        .into_iter()
        .filter(|&one| one != Corruption::Frost);
    for (row, corruption) in others.enumerate() {
        for severity in Severity::ALL {
            let found = corrupt(&set, corruption, severity, 1).unwrap();
            let expected = cell(row, severity.level());
            let far = bytes(&found)
                .iter()
                .zip(&expected)
                .map(|(&a, &b)| a.abs_diff(b));
            // Floats are cut to bytes: a last digit may decide one.
            let most = far.clone().max().unwrap();
            let differing = far.filter(|&far| far > 0).count();
            assert!(
                most <= 1 && differing < 30,
                "{corruption} {severity}: {most}, {differing} of 3072"
            );
        }
    }
}
