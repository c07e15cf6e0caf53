//! Drawn data sets that need no file, 28 x 28 bytes, any number of images from a seed.
//!
//! [`Family::Digits`] looks like handwriting: strokes of a digit, bent by a smooth random field
//! (`deform.rs`), turned, sheared, scaled and moved, drawn with a round pen of random width, with
//! noise. [`Family::Shapes`] is its out-of-distribution partner: filled outlines of clothes and
//! geometric figures with a texture. Image `i` depends on the family, the seed and `i` only, so threads
//! do not matter and a longer set starts with the shorter one. Classes take turns: image `i` has the
//! class `i mod 10`.

mod deform;
mod digits;
mod noise;
mod raster;
mod shapes;

use rayon::prelude::*;

use self::deform::Deformation;
use self::noise::Noise;
use self::raster::{Canvas, SIDE};
use super::error::DataError;
use super::images::{ImageSet, Pixels};
use super::labels::Labels;

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The digits 0 to 9, named `glyphs`.
    Digits,
    /// Clothes and figures, named `shapes`.
    Shapes,
}

impl Family {
    /// The name of the data set.
    pub fn name(self) -> &'static str {
        match self {
            Self::Digits => "glyphs",
            Self::Shapes => "shapes",
        }
    }

    /// The names of the ten classes.
    pub fn classes(self) -> [&'static str; 10] {
        match self {
            Self::Digits => ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
            Self::Shapes => shapes::NAMES,
        }
    }

    /// Draws `[count, 1, 28, 28]`.
    pub fn draw(self, count: usize, seed: u64) -> Result<ImageSet, DataError> {
        const PIXELS: usize = SIDE * SIDE;
        let mut pixels = vec![0; count * PIXELS];
        pixels
            .par_chunks_mut(PIXELS)
            .enumerate()
            .for_each(|(index, pixels)| self.draw_one(index, seed, pixels));
        let labels = Labels {
            values: Some((0..count).map(|index| (index % 10) as i64).collect()),
            names: self.classes().map(str::to_owned).to_vec(),
        };
        let source = format!("{}, {count} images drawn from seed {seed}", self.name());
        ImageSet::new(Pixels::U8(pixels), [count, 1, SIDE, SIDE], labels, source)
    }

    fn draw_one(self, index: usize, seed: u64, pixels: &mut [u8]) {
        let mut noise = Noise::new(seed, self as u64, index as u64);
        let class = index % 10;
        let mut canvas = Canvas::new();
        match self {
            Self::Digits => {
                let strokes = digits::strokes(class, &mut noise);
                let deformation = Deformation::handwriting(&mut noise);
                let radius = noise.range(0.75, 1.6);
                for stroke in strokes {
                    let points: Vec<_> = stroke.iter().map(|&p| deformation.apply(p)).collect();
                    canvas.stroke(&points, radius);
                }
                canvas.grain(&mut noise);
            }
            Self::Shapes => {
                let deformation = Deformation::cloth(&mut noise);
                let outlines: Vec<Vec<_>> = shapes::outlines(class)
                    .iter()
                    .map(|outline| outline.iter().map(|&p| deformation.apply(p)).collect())
                    .collect();
                canvas.fill(&outlines);
                canvas.texture(&mut noise);
                canvas.grain(&mut noise);
            }
        }
        canvas.write(pixels);
    }
}

#[cfg(test)]
mod tests {
    use super::super::normalise::Normalisation;
    use super::*;

    fn bytes(set: &ImageSet) -> &[u8] {
        match set.pixels() {
            Pixels::U8(bytes) => bytes,
            Pixels::F32(_) => panic!("bytes"),
        }
    }

    fn on_threads(threads: usize, count: usize, seed: u64) -> ImageSet {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| Family::Digits.draw(count, seed).unwrap())
    }

    #[test]
    fn the_seed_decides_and_threads_do_not() {
        let one = on_threads(1, 200, 7);
        assert_eq!(one, on_threads(3, 200, 7));
        assert_eq!(bytes(&one.first(50)), bytes(&on_threads(2, 50, 7)));
        assert_ne!(bytes(&one), bytes(&on_threads(1, 200, 8)));
        assert_eq!(one.labels().counts(), [20; 10]);
        assert!(Family::Digits.draw(0, 1).is_err());
    }

    #[test]
    fn every_image_has_ink_and_a_dark_margin() {
        for family in [Family::Digits, Family::Shapes] {
            let set = family.draw(500, 3).unwrap();
            for image in bytes(&set).chunks(SIDE * SIDE) {
                let ink = image.iter().filter(|&&x| x > 100).count();
                assert!((15..600).contains(&ink), "{ink} bright pixels");
                let corners = [0, SIDE - 1, SIDE * (SIDE - 1), SIDE * SIDE - 1];
                assert!(corners.iter().all(|&corner| image[corner] < 120));
            }
        }
    }

    /// The accuracy of the class whose mean image is nearest.
    fn nearest_mean(train: &ImageSet, test: &ImageSet) -> f64 {
        let row = train.row();
        let [train, test] = [train, test].map(|set| set.examples(&Normalisation::Unit).unwrap());
        let mut means = vec![vec![0.0_f32; row]; 10];
        for (image, &label) in train.values.chunks(row).zip(&train.labels) {
            let mean = &mut means[label as usize];
            mean.iter_mut().zip(image).for_each(|(mean, x)| *mean += x);
        }
        let per_class = train.shape[0] as f32 / 10.0;
        means
            .iter_mut()
            .flatten()
            .for_each(|mean| *mean /= per_class);
        let distance = |mean: &[f32], image: &[f32]| -> f32 {
            mean.iter().zip(image).map(|(a, b)| (a - b).powi(2)).sum()
        };
        let right = test
            .values
            .chunks(row)
            .zip(&test.labels)
            .filter(|(image, label)| {
                let nearest = (0..10).min_by(|&a, &b| {
                    distance(&means[a], image).total_cmp(&distance(&means[b], image))
                });
                nearest == Some(**label as usize)
            });
        right.count() as f64 / test.shape[0] as f64
    }

    #[test]
    fn digits_are_neither_trivial_nor_hopeless() {
        let train = Family::Digits.draw(4000, 0).unwrap();
        let test = Family::Digits.draw(1000, 1).unwrap();
        let accuracy = nearest_mean(&train, &test);
        println!("nearest mean: {accuracy}");
        assert!((0.6..0.95).contains(&accuracy), "{accuracy}");
    }

    #[test]
    fn the_partner_is_another_family() {
        let mean = |family: Family| {
            let set = family.draw(500, 0).unwrap();
            let sum: f64 = bytes(&set).iter().map(|&x| f64::from(x)).sum();
            sum / bytes(&set).len() as f64 / 255.0
        };
        let (digits, shapes) = (mean(Family::Digits), mean(Family::Shapes));
        // MNIST has 0.13, Fashion-MNIST 0.29.
        assert!((0.08..0.19).contains(&digits), "{digits}");
        assert!((0.2..0.4).contains(&shapes), "{shapes}");
    }
}
