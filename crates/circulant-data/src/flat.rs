//! Pictures without classes: one file, some files, or a folder of them.

use std::path::{Path, PathBuf};

use super::error::DataError;
use super::folder::pictures;
use super::idx::name;
use super::images::{ImageSet, Pixels};
use super::labels::Labels;
use super::options::ReadOptions;
use super::picture::{Wanted, decode_all};

/// Whether a folder has pictures itself.
pub fn is_folder(folder: &Path) -> bool {
    pictures(folder).is_ok_and(|found| !found.is_empty())
}

/// Reads a picture, or all pictures of a folder by name.
pub fn read(path: &Path, options: &ReadOptions) -> Result<ImageSet, DataError> {
    let place = path.display().to_string();
    if !path.is_dir() {
        return read_files(&[path.to_owned()], options, place);
    }
    let files = pictures(path)?;
    let set = read_files(&files, options, place)?;
    set.with_files(files.iter().map(|file| name(file)).collect())
}

/// Reads pictures in the order given. `place` says where they are from.
pub fn read_files(
    files: &[PathBuf],
    options: &ReadOptions,
    place: impl Into<String>,
) -> Result<ImageSet, DataError> {
    let place = place.into();
    if files.is_empty() {
        return Err(DataError::Empty {
            place,
            expected: "PNG or JPEG pictures".to_owned(),
        });
    }
    let wanted = Wanted {
        channels: options.channels,
        size: options.size,
    };
    let found = decode_all(files, wanted, &|_| ())?;
    let [channels, height, width] = found.shape;
    let shape = [files.len(), channels, height, width];
    let set = ImageSet::new(Pixels::U8(found.pixels), shape, Labels::default(), place)?;
    let names = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    Ok(set.with_files(names)?.with_scaled(found.scaled))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use image::{GrayImage, Luma, Rgb, RgbImage};
    use tempfile::TempDir;

    use super::super::{DataSet, read};
    use super::*;

    #[test]
    fn one_file_some_files_and_a_folder() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        GrayImage::from_pixel(3, 2, Luma([9]))
            .save(root.join("b.png"))
            .unwrap();
        RgbImage::from_pixel(3, 2, Rgb([10, 200, 30]))
            .save(root.join("a.png"))
            .unwrap();
        fs::write(root.join("notes.txt"), "no picture").unwrap();
        let all = |path: &Path, options: &ReadOptions| match read(path, options).unwrap() {
            DataSet::Images(set) => set,
            DataSet::Features(_) => panic!("pictures"),
        };
        let set = all(root, &ReadOptions::default());
        assert_eq!(set.shape(), [2, 3, 2, 3]);
        assert_eq!(set.files(), ["a.png", "b.png"]);
        assert_eq!((set.labels().values.clone(), set.scaled()), (None, 0));
        // A model for grey pictures of another size.
        let options = ReadOptions {
            channels: Some(1),
            size: Some([2, 2]),
            ..Default::default()
        };
        let set = all(root, &options);
        assert_eq!((set.shape(), set.scaled()), ([2, 1, 2, 2], 2));
        let Pixels::U8(bytes) = set.pixels() else {
            panic!("bytes")
        };
        // 0.299 R + 0.587 G + 0.114 B.
        assert_eq!(*bytes, [[124; 4], [9; 4]].concat());
        let one = all(&root.join("b.png"), &ReadOptions::default());
        assert_eq!(one.shape(), [1, 1, 2, 3]);
        assert!(one.files()[0].ends_with("b.png"));
        // Parts keep the names.
        assert_eq!(set.select(&[1]).unwrap().files(), ["b.png"]);
        assert_eq!(set.first(1).files(), ["a.png"]);
        assert!(set.with_files(vec!["one".to_owned()]).is_err());
        assert!(read_files(&[], &options, "nothing").is_err());
    }

    #[test]
    fn a_damaged_picture_is_named() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.png");
        fs::write(&path, b"foreign").unwrap();
        let error = read(&path, &ReadOptions::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a.png") && error.contains("cut short"),
            "{error}"
        );
    }
}
