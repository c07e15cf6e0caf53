//! A folder of images by class: `CLASS/*.png`, also below `train/` and `test/` (or `val/`). Classes are
//! the names of the folders in alphabetical order; images are sorted by name.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::DataError;
use super::idx::name;
use super::images::{ImageSet, Pixels};
use super::labels::Labels;
use super::options::{ReadOptions, Split};
use super::picture::{Wanted, decode_all, is_picture};

/// Whether a folder has folders with pictures, itself or in its parts.
pub fn is_folder(folder: &Path) -> bool {
    let has_classes = |folder: &Path| {
        subfolders(folder).is_ok_and(|classes| {
            let has_pictures = |class: &PathBuf| pictures(class).is_ok_and(|p| !p.is_empty());
            classes.iter().any(has_pictures)
        })
    };
    has_classes(folder)
        || subfolders(folder).is_ok_and(|parts| parts.iter().any(|part| has_classes(part)))
}

/// Whether a folder of images by class has no folder for a part: training and test pictures are the same.
pub fn is_whole(folder: &Path) -> bool {
    is_folder(folder)
        && Split::ALL.iter().all(|&split| {
            let options = ReadOptions {
                split,
                ..Default::default()
            };
            part(folder, &options).is_ok_and(|found| found == folder)
        })
}

/// Reads all images of a folder, or of its part `options.split` if it has parts.
pub fn read(folder: &Path, options: &ReadOptions) -> Result<ImageSet, DataError> {
    let root = part(folder, options)?;
    let place = root.display().to_string();
    let mut names = Vec::new();
    let mut files = Vec::new();
    let mut labels = Vec::new();
    for class in subfolders(&root)? {
        let pictures = pictures(&class)?;
        if pictures.is_empty() {
            return Err(DataError::Empty {
                place: class.display().to_string(),
                expected: "PNG or JPEG pictures of this class".to_owned(),
            });
        }
        labels.extend(pictures.iter().map(|_| names.len() as i64));
        files.extend(pictures);
        names.push(name(&class));
    }
    if files.is_empty() {
        return Err(DataError::Empty {
            place,
            expected: "one folder of PNG or JPEG pictures per class".to_owned(),
        });
    }
    let wanted = Wanted {
        size: options.size,
        channels: options.channels,
    };
    let pictures = decode_all(&files, wanted, &|_| ())?;
    let [channels, height, width] = pictures.shape;
    let labels = Labels {
        values: Some(labels),
        names,
    };
    let shape = [files.len(), channels, height, width];
    let within = |file: &PathBuf| {
        let class = file.parent().map(name).unwrap_or_default();
        format!("{class}/{}", name(file))
    };
    let set = ImageSet::new(Pixels::U8(pictures.pixels), shape, labels, place)?;
    let set = set.with_files(files.iter().map(within).collect())?;
    Ok(set.with_scaled(pictures.scaled))
}

fn part(folder: &Path, options: &ReadOptions) -> Result<PathBuf, DataError> {
    let parts = subfolders(folder)?;
    let of_split = |part: &&PathBuf| options.split.words().contains(&name(part).as_str());
    let is_part = |part: &PathBuf| ["train", "test", "val"].contains(&name(part).as_str());
    match parts.iter().find(of_split) {
        Some(part) => Ok(part.clone()),
        None if !parts.is_empty() && parts.iter().all(is_part) => Err(DataError::format(
            folder.display().to_string(),
            format!("a folder for the {} part", options.split),
            parts
                .iter()
                .map(|part| name(part))
                .collect::<Vec<_>>()
                .join(", "),
            "choose another split, or name the part's folder",
        )),
        None => Ok(folder.to_owned()),
    }
}

/// Folders in alphabetical order, without hidden ones.
pub(crate) fn subfolders(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    entries(folder, |path| path.is_dir() && !name(path).starts_with('.'))
}

/// Pictures in alphabetical order.
pub(crate) fn pictures(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    entries(folder, |path| is_picture(&name(path)))
}

fn entries(folder: &Path, keep: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, DataError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(DataError::io("read", folder))? {
        let path = entry.map_err(DataError::io("read", folder))?.path();
        if keep(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, Luma, Rgb, RgbImage};
    use tempfile::TempDir;

    use super::super::error::Setting;
    use super::*;

    fn grey(path: &Path, size: u32, value: u8) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        GrayImage::from_pixel(size, size, Luma([value]))
            .save(path)
            .unwrap();
    }

    #[test]
    fn classes_are_the_folders() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        grey(&root.join("zero/2.png"), 3, 20);
        grey(&root.join("zero/1.png"), 3, 10);
        grey(&root.join("one/a.png"), 3, 30);
        fs::write(root.join("zero/notes.txt"), "not a picture").unwrap();
        assert!(is_folder(root) && is_whole(root));
        let set = read(root, &ReadOptions::default()).unwrap();
        assert_eq!(set.shape(), [3, 1, 3, 3]);
        assert_eq!(set.labels().names, ["one", "zero"]);
        assert_eq!(set.labels().values, Some(vec![0, 1, 1]));
        let mut values = Vec::new();
        set.gather(&[0, 1, 2], &super::super::Normalisation::Raw, &mut values)
            .unwrap();
        assert_eq!([values[0], values[9], values[18]], [30.0, 10.0, 20.0]);
    }

    #[test]
    fn colour_sets_take_grey_pictures_and_sizes_can_be_set() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("test/a")).unwrap();
        let colour = RgbImage::from_pixel(4, 2, Rgb([1, 2, 3]));
        colour.save(root.join("test/a/0.png")).unwrap();
        grey(&root.join("test/b/0.png"), 4, 9);
        assert!(is_folder(root) && !is_whole(root));
        let mut options = ReadOptions {
            split: Split::Test,
            ..Default::default()
        };
        let error = read(root, &options).unwrap_err();
        assert_eq!(error.setting(), Some(Setting::PictureSize), "{error}");
        options.size = Some([2, 4]);
        let set = read(root, &options).unwrap();
        assert_eq!(set.shape(), [2, 3, 2, 4]);
        let Pixels::U8(pixels) = set.pixels() else {
            panic!("bytes");
        };
        assert_eq!(pixels[..24], [[1; 8], [2; 8], [3; 8]].concat());
        assert_eq!(pixels[24..], [9; 24]);
        options.split = Split::Train;
        let error = read(root, &options).unwrap_err().to_string();
        assert!(error.contains("the train part"), "{error}");
    }

    #[test]
    fn damage_is_named() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        let error = || read(root, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error().contains("is empty"));
        fs::create_dir(root.join("a")).unwrap();
        assert!(error().contains("is empty"));
        grey(&root.join("a/0.png"), 20, 7);
        let whole = fs::read(root.join("a/0.png")).unwrap();
        for content in [&whole[..whole.len() / 2], b"", b"foreign"] {
            fs::write(root.join("a/1.png"), content).unwrap();
            let text = error();
            assert!(
                text.contains("1.png") && text.contains("cut short"),
                "{text}"
            );
        }
        fs::remove_file(root.join("a/1.png")).unwrap();
        let colour = RgbImage::from_pixel(20, 20, Rgb([1, 2, 3]));
        colour.save(root.join("a/2.png")).unwrap();
        assert!(error().contains("a colour picture"));
    }
}
