//! The data: MNIST against Fashion-MNIST, or drawn digits against drawn shapes.

use anyhow::Context;
use clap::ValueEnum;

use super::super::config::DataConfig;
use super::super::source;
use circulant_data::fetch::{FetchOptions, Progress, fetch};
use circulant_data::known::{FASHION_MNIST, MNIST};
use circulant_data::{ImageSet, Split};

/// Which data to run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MnistChoice {
    /// MNIST if it is cached or can be fetched, else glyphs.
    Auto,
    /// MNIST and Fashion-MNIST; fetched if they are not cached.
    Mnist,
    /// Drawn digits and shapes; needs no files.
    Glyphs,
}

/// Images for training, for testing, and out-of-distribution ones.
pub struct MnistSets {
    /// `mnist` or `glyphs`.
    pub name: &'static str,
    /// What the out-of-distribution images are called.
    pub ood_name: &'static str,
    pub train: ImageSet,
    pub test: ImageSet,
    /// The test part of the other set.
    pub ood: ImageSet,
    /// Why it is not MNIST, if nobody asked for that.
    pub fallback: Option<String>,
}

impl MnistSets {
    /// Loads the sets; `first` keeps only that many images of each part.
    pub fn load(
        choice: MnistChoice,
        first: Option<usize>,
        options: &FetchOptions,
        progress: &dyn Progress,
    ) -> anyhow::Result<Self> {
        let fallback = match choice {
            MnistChoice::Glyphs => None,
            MnistChoice::Auto | MnistChoice::Mnist => {
                let fetched = [&MNIST, &FASHION_MNIST]
                    .iter()
                    .try_for_each(|known| fetch(known, options, progress).map(|_| ()));
                match fetched {
                    Ok(()) => return Self::named("mnist", "fashion-mnist", first),
                    Err(error) if choice == MnistChoice::Mnist => {
                        return Err(error)
                            .context("MNIST cannot be had; --data glyphs needs no files");
                    }
                    Err(error) => Some(error.to_string()),
                }
            }
        };
        let sets = Self::named("glyphs", "shapes", first)?;
        Ok(Self { fallback, ..sets })
    }

    fn named(
        name: &'static str,
        ood_name: &'static str,
        first: Option<usize>,
    ) -> anyhow::Result<Self> {
        let options = DataConfig {
            first,
            ..DataConfig::default()
        };
        Ok(Self {
            name,
            ood_name,
            train: source::images(name, Split::Train, &options)?,
            test: source::images(name, Split::Test, &options)?,
            ood: source::images(ood_name, Split::Test, &options)?,
            fallback: None,
        })
    }

    /// Whether the numbers may be held against the paper's.
    pub fn is_real(&self) -> bool {
        self.name == "mnist"
    }
}
