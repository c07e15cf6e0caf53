//! Data sets: readers, the cache of known sets, and sets that are drawn.
//!
//! Everything ends as an [`ImageSet`] `[n, channels, height, width]` or a [`FeatureSet`] `[n, d]`,
//! checked once: sizes, labels and finite numbers. [`read()`] takes any path, [`load_known`] a name.

#![forbid(unsafe_code)]

mod array;
mod cache;
mod check;
pub mod cifar;
pub mod corrupt;
mod decode;
pub mod encode;
mod error;
mod exif;
mod features;
pub mod fetch;
mod fingerprint;
pub mod flat;
pub mod folder;
pub mod glyphs;
pub mod idx;
mod images;
pub mod known;
mod labels;
mod normalise;
pub mod npy;
mod options;
pub mod picture;
mod read;
mod split_mix;
mod stream;
mod summary;
pub mod table;
pub mod tensors;
mod thumbnail;
pub mod tiny_imagenet;

pub use self::array::{Array, Element, Numbers};
pub use self::cache::Cache;
pub use self::error::{DataError, Setting};
pub use self::features::FeatureSet;
pub use self::fingerprint::Fingerprint;
pub use self::images::{ImageSet, Pixels};
pub use self::known::{Known, load_known};
pub use self::labels::{Examples, Labels};
pub use self::normalise::Normalisation;
pub use self::options::{ReadOptions, Split};
pub use self::read::{DataSet, Format, read};
pub use self::stream::MOST_UNPACKED;
pub use self::summary::{Class, Summary};
pub use self::table::{
    EncodedTable, Missing, RawTable, TableOptions, TableSchema, TableTask, TaskChoice,
};
