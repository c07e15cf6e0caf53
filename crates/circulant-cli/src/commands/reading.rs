//! Flags that say how a path is to be read, the same for all commands.

use std::path::PathBuf;

use clap::Args;

use crate::experiments::config::DataConfig;

/// How data are read from a path.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Reading data")]
pub struct Reading {
    /// A file with the labels, for IDX and NPY.
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// The array with the inputs, for NPZ and safetensors.
    #[arg(long, value_name = "NAME")]
    input_name: Option<String>,
    /// The array with the labels, or the label column of a CSV file: a name or a number from 0.
    #[arg(long, value_name = "NAME")]
    label_name: Option<String>,
    /// Scale the images of a folder.
    #[arg(long, value_name = "HEIGHTxWIDTH", value_parser = parse_size)]
    size: Option<[usize; 2]>,
    /// Read rows of values as images.
    #[arg(long, value_name = "CHANNELSxHEIGHTxWIDTH", value_parser = parse_image)]
    image: Option<[usize; 3]>,
    /// Take only N examples: drawn, every class with its share (`predict` takes the first ones).
    #[arg(long, value_name = "N")]
    first: Option<usize>,
}

impl Reading {
    /// Flags that are given replace settings.
    pub fn apply(&self, data: &mut DataConfig) {
        fn replace<T: Clone>(place: &mut Option<T>, flag: &Option<T>) {
            if flag.is_some() {
                place.clone_from(flag);
            }
        }
        replace(&mut data.labels, &self.labels);
        replace(&mut data.input_name, &self.input_name);
        replace(&mut data.label_name, &self.label_name);
        replace(&mut data.size, &self.size);
        replace(&mut data.image, &self.image);
        replace(&mut data.first, &self.first);
    }
}

/// `32x48` as `[32, 48]`.
pub(super) fn parse_size(text: &str) -> Result<[usize; 2], String> {
    sides(text).ok_or_else(|| "expected HEIGHTxWIDTH with sides in 1..=4096, as 32x32".to_owned())
}

/// `3x32x48` as `[3, 32, 48]`.
fn parse_image(text: &str) -> Result<[usize; 3], String> {
    sides(text).ok_or_else(|| {
        "expected CHANNELSxHEIGHTxWIDTH with values in 1..=4096, as 1x28x28".to_owned()
    })
}

fn sides<const N: usize>(text: &str) -> Option<[usize; N]> {
    let side = |text: &str| text.parse().ok().filter(|side| (1..=4096).contains(side));
    let sides: Option<Vec<usize>> = text.split('x').map(side).collect();
    sides?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sizes_are_read_as_they_are_written(sides in proptest::array::uniform3(1..=4096_usize)) {
            let [channels, height, width] = sides;
            prop_assert_eq!(parse_size(&format!("{height}x{width}")), Ok([height, width]));
            prop_assert_eq!(parse_image(&format!("{channels}x{height}x{width}")), Ok(sides));
        }

        #[test]
        fn other_texts_are_refused(text in "[0-9x+ .-]{0,12}|.{0,8}") {
            let Ok(sides) = parse_size(&text) else { return Ok(()) };
            prop_assert!(sides.iter().all(|side| (1..=4096).contains(side)));
            prop_assert_eq!(text.matches('x').count(), 1);
        }
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(parse_size("32x48"), Ok([32, 48]));
        assert_eq!(parse_image("3x32x48"), Ok([3, 32, 48]));
        for wrong in ["32", "0x4", "x", "4x99999", "-1x2", "1x2x3"] {
            assert!(parse_size(wrong).is_err());
        }
    }
}
