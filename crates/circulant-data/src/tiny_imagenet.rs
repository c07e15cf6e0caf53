//! Tiny-ImageNet's folder: `train/CLASS/images/*.JPEG` and `val/images/*.JPEG` with
//! `val/val_annotations.txt` (image, class and box, separated by tabs). Classes are the `n...` names in
//! alphabetical order; `words.txt`, if there, gives the names people use. Grey pictures become colour.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView};
use sha2::{Digest, Sha256};

use super::cache::{Cache, store_tensors};
use super::error::DataError;
use super::fingerprint::Fingerprint;
use super::folder::{pictures, subfolders};
use super::idx::name;
use super::images::{ImageSet, Pixels};
use super::labels::Labels;
use super::options::{ReadOptions, Split};
use super::picture::{Wanted, decode_all};
use super::read::DataSet;
use super::tensors;

const ANNOTATIONS: &str = "val_annotations.txt";

/// Whether a folder has Tiny-ImageNet's layout.
pub fn is_folder(folder: &Path) -> bool {
    folder.join("val").join(ANNOTATIONS).is_file()
        || subfolders(&folder.join("train"))
            .is_ok_and(|classes| classes.first().is_some_and(|c| c.join("images").is_dir()))
}

/// Reads the part `split`; the test part is `val`, as the labels of `test` are not public.
pub fn read_folder(folder: &Path, split: Split) -> Result<ImageSet, DataError> {
    Part::list(folder, split)?.decode(&|_, _| ())
}

/// [`read_folder`], decoded once: the pixels are kept in a cache under a name made of the pictures' names, sizes and times.
/// A cache that cannot be written is no error. `progress` hears how many of all are decoded, from any thread.
pub fn read_cached(
    folder: &Path,
    split: Split,
    cache: &Cache,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<ImageSet, DataError> {
    let part = Part::list(folder, split)?;
    let path = cache.decoded(&part.key()?);
    if let Ok(DataSet::Images(set)) = tensors::read(&path, &ReadOptions::default()) {
        return ImageSet::new(
            set.pixels().clone(),
            set.shape(),
            set.labels().clone(),
            part.place,
        );
    }
    let set = part.decode(progress)?;
    // Decoding again is slow, not wrong.
    let _ = store(&set, &path);
    Ok(set)
}

/// One part of the set, before anything is decoded.
struct Part {
    place: String,
    files: Vec<PathBuf>,
    labels: Labels,
}

impl Part {
    fn list(folder: &Path, split: Split) -> Result<Self, DataError> {
        let classes: Vec<String> = subfolders(&folder.join("train"))?
            .iter()
            .map(|class| name(class))
            .collect();
        let part = folder.join(match split {
            Split::Train => "train",
            Split::Test => "val",
        });
        let place = part.display().to_string();
        let (files, labels) = match split {
            Split::Train => train(&part, &classes)?,
            Split::Test => validation(&part, &classes)?,
        };
        if files.is_empty() {
            return Err(DataError::Empty {
                place,
                expected: "JPEG pictures".to_owned(),
            });
        }
        let labels = Labels {
            values: Some(labels),
            names: words(folder, classes)?,
        };
        Ok(Self {
            place,
            files,
            labels,
        })
    }

    fn decode(self, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<ImageSet, DataError> {
        let wanted = Wanted {
            channels: Some(3),
            size: None,
        };
        let count = self.files.len();
        let pictures = decode_all(&self.files, wanted, &|done| progress(done, count))?;
        let [channels, height, width] = pictures.shape;
        let shape = [count, channels, height, width];
        ImageSet::new(Pixels::U8(pictures.pixels), shape, self.labels, self.place)
    }

    /// Changes when a picture, a label or a name does.
    fn key(&self) -> Result<String, DataError> {
        let mut hash = Sha256::new();
        for (file, label) in self.files.iter().zip(self.labels.values.iter().flatten()) {
            let metadata = fs::metadata(file).map_err(DataError::io("read", file))?;
            let time = metadata.modified().ok();
            let time = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
            let time = time.map_or(0, |time| time.as_nanos());
            let line = format!("{}\n{} {time} {label}\n", file.display(), metadata.len());
            hash.update(line);
        }
        hash.update(self.labels.names.join("\n"));
        Ok(Fingerprint::from_hash(hash).to_string())
    }
}

/// Writes pixels and labels as safetensors, beside the place and then in it.
fn store(set: &ImageSet, path: &Path) -> io::Result<()> {
    let (Pixels::U8(pixels), Some(labels)) = (set.pixels(), &set.labels().values) else {
        return Ok(());
    };
    let names = &set.labels().names;
    if names.iter().any(|name| name.contains(',')) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let bytes: Vec<u8> = labels
        .iter()
        .flat_map(|label| label.to_le_bytes())
        .collect();
    let invalid = |error: SafeTensorError| io::Error::other(error.to_string());
    let images = TensorView::new(Dtype::U8, set.shape().to_vec(), pixels).map_err(invalid)?;
    let labels = TensorView::new(Dtype::I64, vec![labels.len()], &bytes).map_err(invalid)?;
    let metadata = HashMap::from([("classes".to_owned(), names.join(","))]);
    store_tensors(path, vec![("images", images), ("labels", labels)], metadata)
}

type Listing = (Vec<PathBuf>, Vec<i64>);

fn train(part: &Path, classes: &[String]) -> Result<Listing, DataError> {
    let mut listing = Listing::default();
    for (label, class) in classes.iter().enumerate() {
        let found = pictures(&part.join(class).join("images"))?;
        listing.1.extend(found.iter().map(|_| label as i64));
        listing.0.extend(found);
    }
    Ok(listing)
}

fn validation(part: &Path, classes: &[String]) -> Result<Listing, DataError> {
    let path = part.join(ANNOTATIONS);
    let text = fs::read_to_string(&path).map_err(DataError::io("read", &path))?;
    let place = path.display().to_string();
    let (files, labels): Listing = annotations(&text, classes, &place)?
        .into_iter()
        .map(|(file, label)| (part.join("images").join(file), label))
        .unzip();
    let images = pictures(&part.join("images"))?.len();
    if images != labels.len() {
        return Err(DataError::LabelCount {
            place,
            examples: images,
            labels: labels.len(),
        });
    }
    Ok((files, labels))
}

/// The names of pictures and their classes, from the text of `val_annotations.txt`. `place` names it in
/// errors.
pub fn annotations<'a>(
    text: &'a str,
    classes: &[String],
    place: &str,
) -> Result<Vec<(&'a str, i64)>, DataError> {
    let mut listing = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = || format!("{place}, line {}", index + 1);
        let mut fields = line.split('\t');
        let (Some(file), Some(class)) = (fields.next(), fields.next()) else {
            return Err(DataError::format(
                place(),
                "an image and a class, separated by a tab",
                format!("{line:?}"),
                "the file is cut short or damaged: unpack it again",
            ));
        };
        // A name that leads out of the folder would make any file of the machine part of the set.
        if name(Path::new(file)) != file {
            return Err(DataError::format(
                place(),
                "the name of a file in images/",
                format!("{file:?}"),
                "the file is damaged or not to be trusted: unpack it again",
            ));
        }
        let label = classes.iter().position(|name| name == class);
        let label = label.ok_or_else(|| DataError::Label {
            place: place(),
            example: index,
            label: class.to_owned(),
            expected: format!("one of the {} classes of train/", classes.len()),
        })?;
        listing.push((file, label as i64));
    }
    Ok(listing)
}

/// The names people use, from `words.txt`.
fn words(folder: &Path, classes: Vec<String>) -> Result<Vec<String>, DataError> {
    let path = folder.join("words.txt");
    if !path.is_file() {
        return Ok(classes);
    }
    let text = fs::read_to_string(&path).map_err(DataError::io("read", &path))?;
    let words: HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let word = |class: String| {
        let word = words
            .get(class.as_str())
            .and_then(|word| word.split(',').next());
        word.map_or(class.clone(), str::to_owned)
    };
    Ok(classes.into_iter().map(word).collect())
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, Luma, Rgb, RgbImage};
    use tempfile::TempDir;

    use super::*;

    fn layout() -> TempDir {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        for (class, value) in [("n01", 40), ("n02", 200)] {
            let images = root.join("train").join(class).join("images");
            fs::create_dir_all(&images).unwrap();
            let colour = RgbImage::from_pixel(8, 8, Rgb([value, 10, 90]));
            colour.save(images.join(format!("{class}_0.JPEG"))).unwrap();
            let grey = GrayImage::from_pixel(8, 8, Luma([value]));
            grey.save(images.join(format!("{class}_1.JPEG"))).unwrap();
        }
        fs::create_dir_all(root.join("val/images")).unwrap();
        for index in 0..2 {
            let colour = RgbImage::from_pixel(8, 8, Rgb([0, 0, 0]));
            colour
                .save(root.join(format!("val/images/val_{index}.JPEG")))
                .unwrap();
        }
        let annotations = "val_0.JPEG\tn02\t0\t0\t7\t7\nval_1.JPEG\tn01\t0\t0\t7\t7\n";
        fs::write(root.join("val").join(ANNOTATIONS), annotations).unwrap();
        fs::write(root.join("words.txt"), "n01\tgoldfish, carp\nn99\tother\n").unwrap();
        folder
    }

    #[test]
    fn both_parts_are_read() {
        let folder = layout();
        assert!(is_folder(folder.path()));
        let train = read_folder(folder.path(), Split::Train).unwrap();
        assert_eq!(train.shape(), [4, 3, 8, 8]);
        assert_eq!(train.labels().values, Some(vec![0, 0, 1, 1]));
        assert_eq!(train.labels().names, ["goldfish", "n02"]);
        let Pixels::U8(pixels) = train.pixels() else {
            panic!("bytes");
        };
        let grey = &pixels[192..384];
        assert!(
            grey.iter().all(|x| x.abs_diff(40) <= 2),
            "grey in all channels"
        );
        let test = read_folder(folder.path(), Split::Test).unwrap();
        assert_eq!(test.labels().values, Some(vec![1, 0]));
    }

    #[test]
    fn pictures_are_decoded_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (folder, place) = (layout(), TempDir::new().unwrap());
        let cache = Cache::at(place.path());
        let read = || {
            let decoded = AtomicUsize::new(0);
            let count = |_, all| {
                assert_eq!(all, 4);
                decoded.fetch_add(1, Ordering::Relaxed);
            };
            let set = read_cached(folder.path(), Split::Train, &cache, &count).unwrap();
            (set, decoded.into_inner())
        };
        let fresh = read_folder(folder.path(), Split::Train).unwrap();
        assert_eq!(read(), (fresh.clone(), 4));
        assert_eq!(read(), (fresh, 0));

        // Another picture in its place is noticed.
        let picture = folder.path().join("train/n01/images/n01_0.JPEG");
        RgbImage::from_pixel(8, 8, Rgb([1, 2, 3]))
            .save(picture)
            .unwrap();
        let (changed, decoded) = read();
        assert_eq!(
            (changed, decoded),
            (read_folder(folder.path(), Split::Train).unwrap(), 4)
        );

        // So is a damaged cache, and one that cannot be written does no harm.
        for entry in fs::read_dir(place.path().join("decoded")).unwrap() {
            fs::write(entry.unwrap().path(), "damaged").unwrap();
        }
        assert_eq!(read().1, 4);
        assert_eq!(read().1, 0);
        let nowhere = Cache::at("/dev/null/cache");
        let set = read_cached(folder.path(), Split::Test, &nowhere, &|_, _| ()).unwrap();
        assert_eq!(set, read_folder(folder.path(), Split::Test).unwrap());
    }

    #[test]
    fn damage_is_named() {
        let folder = layout();
        let annotations = folder.path().join("val").join(ANNOTATIONS);
        let error = || {
            read_folder(folder.path(), Split::Test)
                .unwrap_err()
                .to_string()
        };
        for (content, message) in [
            ("val_0.JPEG\tn02\t0\n", "2 examples and 1 labels"),
            ("val_0.JPEG\tn77\t0\n", "n77"),
            ("val_0.JPEG", "separated by a tab"),
            ("val_0.JPEG\tn01\nval_9.JPEG\tn01\n", "val_9.JPEG"),
            ("", "0 labels"),
            (
                "../../train/n01/images/n01_0.JPEG\tn01\n",
                "the name of a file",
            ),
            ("/etc/hostname\tn01\n", "the name of a file"),
            ("..\tn01\n", "the name of a file"),
        ] {
            fs::write(&annotations, content).unwrap();
            assert!(error().contains(message), "{}", error());
        }
        let picture = folder.path().join("train/n01/images/n01_0.JPEG");
        let whole = fs::read(&picture).unwrap();
        fs::write(&picture, &whole[..20]).unwrap();
        let error = read_folder(folder.path(), Split::Train).unwrap_err();
        assert!(error.to_string().contains("n01_0.JPEG"), "{error}");
    }
}
