//! The names of the corruptions and their severities.

use std::fmt;
use std::str::FromStr;

use super::super::error::DataError;
use super::super::options::by_name;

/// Variant, name and what it is.
macro_rules! corruptions {
    ($($variant:ident, $name:literal, $about:literal;)*) => {
        /// A corruption of CIFAR-10-C. The order is that of the published set: fifteen, then the four extra ones.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Corruption {
            $(#[doc = $about] $variant,)*
        }

        impl Corruption {
            /// All nineteen.
            pub const ALL: [Self; 19] = [$(Self::$variant),*];

            /// The name in the published set, which is that of its file without `.npy`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

corruptions! {
    GaussianNoise, "gaussian_noise", "Normal noise on every number.";
    ShotNoise, "shot_noise", "Poisson noise, as of few photons.";
    ImpulseNoise, "impulse_noise", "Numbers set to black or white.";
    DefocusBlur, "defocus_blur", "The kernel of a lens out of focus, a disk.";
    GlassBlur, "glass_blur", "Pixels moved to neighbours, as behind frosted glass.";
    MotionBlur, "motion_blur", "The camera moves along a line.";
    ZoomBlur, "zoom_blur", "The camera moves towards the object.";
    Snow, "snow", "Flakes with motion, and a bright haze.";
    Frost, "frost", "A texture of ice over the picture.";
    Fog, "fog", "A plasma fractal over the picture.";
    Brightness, "brightness", "More value in HSV.";
    Contrast, "contrast", "Less distance from the mean colour.";
    ElasticTransform, "elastic_transform", "An affine map and a smooth random field.";
    Pixelate, "pixelate", "Fewer pixels.";
    JpegCompression, "jpeg_compression", "Lossy compression.";
    SpeckleNoise, "speckle_noise", "Normal noise in proportion to the number; extra.";
    GaussianBlur, "gaussian_blur", "A Gaussian kernel; extra.";
    Spatter, "spatter", "Drops of water or mud; extra.";
    Saturate, "saturate", "Less or more saturation in HSV; extra.";
}

impl Corruption {
    /// The fifteen on which results are reported.
    pub const COMMON: &[Self] = Self::ALL.split_at(15).0;

    /// The four that were kept for choosing hyperparameters.
    pub const EXTRA: &[Self] = Self::ALL.split_at(15).1;
}

impl fmt::Display for Corruption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Corruption {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self, DataError> {
        by_name(&Self::ALL, text, "corruption")
    }
}

/// How strong a corruption is, 1 to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Severity(u8);

impl Severity {
    /// The five, from weak to strong.
    pub const ALL: [Self; 5] = [Self(1), Self(2), Self(3), Self(4), Self(5)];

    /// Checks `level`.
    pub fn new(level: usize) -> Result<Self, DataError> {
        Self::ALL
            .get(level.wrapping_sub(1))
            .copied()
            .ok_or_else(|| Self::wrong(&level.to_string()))
    }

    /// 1 to 5.
    pub fn level(self) -> usize {
        self.0.into()
    }

    /// The parameter of this severity.
    pub(super) fn of<T: Copy>(self, parameters: [T; 5]) -> T {
        parameters[self.level() - 1]
    }

    fn wrong(found: &str) -> DataError {
        DataError::format(
            "severity",
            "a whole number from 1 (weak) to 5 (strong)",
            found,
            "for the clean pictures (severity 0) use the set as it is",
        )
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for Severity {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self, DataError> {
        text.parse()
            .ok()
            .and_then(|level| Self::new(level).ok())
            .ok_or_else(|| Self::wrong(&format!("{text:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_a_wrong_one_lists_all() {
        for one in Corruption::ALL {
            assert_eq!(one.name().parse::<Corruption>().unwrap(), one);
            assert_eq!(one.to_string(), one.name());
        }
        let message = "blurr".parse::<Corruption>().unwrap_err().to_string();
        assert!(message.contains("\"blurr\""), "{message}");
        assert!(Corruption::ALL.iter().all(|c| message.contains(c.name())));
        assert_eq!(Corruption::COMMON.len(), 15);
        assert_eq!(Corruption::EXTRA.len(), 4);
        assert_eq!(Corruption::EXTRA[0], Corruption::SpeckleNoise);
    }

    #[test]
    fn severities_are_one_to_five() {
        for level in 1..=5 {
            assert_eq!(Severity::new(level).unwrap().level(), level);
            assert_eq!(
                level.to_string().parse::<Severity>().unwrap().0,
                level as u8
            );
        }
        for wrong in ["0", "6", "-1", "2.5", "strong", ""] {
            let message = wrong.parse::<Severity>().unwrap_err().to_string();
            assert!(message.contains(&format!("{wrong:?}")), "{message}");
            assert!(message.contains("1 (weak) to 5 (strong)"), "{message}");
        }
        assert!(Severity::new(0).is_err() && Severity::new(6).is_err());
    }
}
