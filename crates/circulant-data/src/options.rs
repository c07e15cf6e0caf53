//! What a caller may say about a data set besides its path.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::DataError;

/// A part of a data set that comes in two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// For training.
    #[default]
    Train,
    /// For testing; Tiny-ImageNet's `val`, whose labels are public.
    Test,
}

impl Split {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Train, Self::Test];

    /// As flags and settings write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }

    /// Words that mark the part in the names of files and arrays.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Train => &["train"],
            Self::Test => &["test", "t10k", "val"],
        }
    }

    pub(crate) fn matches(self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.words().iter().any(|word| name.contains(word))
    }
}

impl fmt::Display for Split {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Split {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self, DataError> {
        by_name(&Self::ALL, name, "a part of a data set")
    }
}

/// The one of `all` that is displayed as `name`.
pub(crate) fn by_name<T: Copy + fmt::Display>(
    all: &[T],
    name: &str,
    what: &str,
) -> Result<T, DataError> {
    let found = all.iter().find(|one| one.to_string() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<String> = all.iter().map(T::to_string).collect();
        let expected = match &names[..] {
            [one, other] => format!("{one} or {other}"),
            _ => format!("one of {}", names.join(", ")),
        };
        DataError::format(what, expected, format!("{name:?}"), "use one of these")
    })
}

/// How to read a path. The default fits data sets with the usual names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadOptions {
    /// Which part, where there are two.
    pub split: Split,
    /// A file with the labels, for IDX and NPY; by default one with a matching name is looked for.
    pub labels: Option<PathBuf>,
    /// The array with images or features in an NPZ or safetensors file.
    pub input_name: Option<String>,
    /// The array with the labels there, or the label column of a CSV file: a name or a number from 0.
    pub label_name: Option<String>,
    /// `[height, width]` to which pictures are scaled; without it all must agree.
    pub size: Option<[usize; 2]>,
    /// 1 or 3: pictures become grey, or grey ones get three equal channels; without it colour if the first picture is.
    pub channels: Option<usize>,
    /// A CSV file without the label column has no labels, instead of being refused.
    pub labels_optional: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for split in Split::ALL {
            assert_eq!(split.to_string().parse::<Split>().unwrap(), split);
        }
        let error = "validation".parse::<Split>().unwrap_err().to_string();
        assert!(error.contains("train or test"), "{error}");
    }
}
