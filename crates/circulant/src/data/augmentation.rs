//! Training images mirrored and moved at random, by a key.

use crate::noise::{NoiseKey, uniform_u64};

/// What may be done to a training image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Augmentation {
    /// Mirrors every second image, left to right.
    pub flip: bool,
    /// Moves images by up to so many pixels each way. What comes in from outside is zero, the mean of normalised
    /// images.
    pub crop: usize,
}

impl Augmentation {
    /// Changes images `[n, channels, height, width]` in place. The key should differ from step to step.
    pub fn apply(&self, values: &mut [f32], image: [usize; 3], key: NoiseKey) {
        self.apply_from(0, values, image, key);
    }

    /// The same for images that are a part of a batch, the first of them at the place `first` of the batch.
    pub fn apply_from(
        &self,
        first: usize,
        values: &mut [f32],
        [channels, height, width]: [usize; 3],
        key: NoiseKey,
    ) {
        if !self.flip && self.crop == 0 {
            return;
        }
        let plane = height * width;
        let mut moved = vec![0.0; plane];
        for (index, image) in values.chunks_exact_mut(channels * plane).enumerate() {
            let place = (first + index) as u64;
            let number = |which: u64| uniform_u64(key, 3 * place + which);
            let mirror = self.flip && number(0) % 2 == 1;
            let shift = |which| {
                let choices = 2 * self.crop as u64 + 1;
                (number(which) % choices) as isize - self.crop as isize
            };
            let (down, right) = (shift(1), shift(2));
            for channel in image.chunks_exact_mut(plane) {
                moved.fill(0.0);
                for row in 0..height {
                    for column in 0..width {
                        let from = if mirror { width - 1 - column } else { column };
                        let to = (row as isize + down, column as isize + right);
                        if (0..height as isize).contains(&to.0)
                            && (0..width as isize).contains(&to.1)
                        {
                            moved[to.0 as usize * width + to.1 as usize] =
                                channel[row * width + from];
                        }
                    }
                }
                channel.copy_from_slice(&moved);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: [usize; 3] = [2, 3, 4];

    fn images(count: usize) -> Vec<f32> {
        (1..=count * 24).map(|x| x as f32).collect()
    }

    fn key(stream: u64) -> NoiseKey {
        NoiseKey { seed: 5, stream }
    }

    #[test]
    fn mirrors_about_half_of_the_images_whole() {
        let augmentation = Augmentation {
            flip: true,
            crop: 0,
        };
        let before = images(400);
        let mut after = before.clone();
        augmentation.apply(&mut after, SHAPE, key(0));
        let mut mirrored = 0;
        for (before, after) in before.chunks(24).zip(after.chunks(24)) {
            let mirror: Vec<f32> = before
                .chunks(4)
                .flat_map(|row| row.iter().rev().copied())
                .collect();
            assert!(after == before || after == mirror);
            mirrored += usize::from(after == mirror);
        }
        // 200 expected, 10 the standard deviation.
        assert!((150..250).contains(&mirrored), "{mirrored}");
    }

    #[test]
    fn moves_all_channels_alike_and_fills_with_zeros() {
        let augmentation = Augmentation {
            flip: false,
            crop: 1,
        };
        let before = images(100);
        let mut after = before.clone();
        augmentation.apply(&mut after, SHAPE, key(0));
        let mut seen = std::collections::HashSet::new();
        for (before, after) in before.chunks(24).zip(after.chunks(24)) {
            let moved = |down: isize, right: isize| -> Vec<f32> {
                (0..24)
                    .map(|i: isize| {
                        let (channel, row, column) = (i / 12, i / 4 % 3 - down, i % 4 - right);
                        let inside = (0..3).contains(&row) && (0..4).contains(&column);
                        if inside {
                            before[(channel * 12 + row * 4 + column) as usize]
                        } else {
                            0.0
                        }
                    })
                    .collect()
            };
            let shifts = (-1..=1).flat_map(|down| (-1..=1).map(move |right| (down, right)));
            let found = shifts
                .into_iter()
                .find(|&(down, right)| moved(down, right) == after);
            seen.insert(found.expect("one of the nine"));
        }
        assert_eq!(seen.len(), 9);
    }

    #[test]
    fn a_part_of_a_batch_is_changed_as_in_the_whole() {
        let augmentation = Augmentation {
            flip: true,
            crop: 2,
        };
        let mut whole = images(20);
        let mut part = whole[7 * 24..12 * 24].to_vec();
        augmentation.apply(&mut whole, SHAPE, key(3));
        augmentation.apply_from(7, &mut part, SHAPE, key(3));
        assert_eq!(part, whole[7 * 24..12 * 24]);
    }

    #[test]
    fn the_key_decides() {
        let augmentation = Augmentation {
            flip: true,
            crop: 2,
        };
        let run = |stream| {
            let mut values = images(20);
            augmentation.apply(&mut values, SHAPE, key(stream));
            values
        };
        assert_eq!(run(0), run(0));
        assert_ne!(run(0), run(1));
        let mut same = images(3);
        Augmentation {
            flip: false,
            crop: 0,
        }
        .apply(&mut same, SHAPE, key(0));
        assert_eq!(same, images(3));
    }
}
