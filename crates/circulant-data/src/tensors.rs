//! safetensors: a JSON header with names, types and places, then the tensors. Only the tensors that are
//! used are read. Names: see [`ReadOptions`]; by default `images`, `features`, `inputs`, `data` or `x`
//! with `labels`, `label`, `targets` or `y`, also with `train` or `test` before or behind.
//! The header's own text may have `classes`: names, separated by commas.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata};

use super::array::{Array, Arrays, Element, choose, count, read_numbers};
use super::error::DataError;
use super::options::ReadOptions;
use super::read::DataSet;
use super::stream::{damage, open, read_exactly};

/// The format's own limit.
const LONGEST_HEADER: u64 = 100_000_000;

/// Reads inputs and labels.
pub fn read(path: &Path, options: &ReadOptions) -> Result<DataSet, DataError> {
    parse(open(path)?, options, path.display().to_string())
}

/// The tensors of [`read`].
pub(crate) fn arrays(path: &Path, options: &ReadOptions) -> Result<Arrays, DataError> {
    parse_arrays(open(path)?, options, &path.display().to_string())
}

/// Reads inputs and labels from the bytes of a file. `place` names it in errors.
pub fn parse(
    reader: impl Read + Seek,
    options: &ReadOptions,
    place: String,
) -> Result<DataSet, DataError> {
    parse_arrays(reader, options, &place)?.into_set(place)
}

fn parse_arrays(
    mut reader: impl Read + Seek,
    options: &ReadOptions,
    place: &str,
) -> Result<Arrays, DataError> {
    let (start, metadata) = read_header(&mut reader, place)?;
    let mut names = metadata.offset_keys();
    names.sort();
    if names.is_empty() {
        return Err(DataError::Empty {
            place: place.to_owned(),
            expected: "tensors".to_owned(),
        });
    }
    let (inputs, labels) = choose(&names, options, place)?;
    let class_names = metadata
        .metadata()
        .as_ref()
        .and_then(|text| text.get("classes"));
    let class_names = class_names.map(|names| names.split(',').map(str::to_owned).collect());
    let mut read = |name: &String| read_tensor(&mut reader, start, &metadata, name, place);
    Ok(Arrays {
        labels: labels.as_ref().map(&mut read).transpose()?,
        class_names: class_names.unwrap_or_default(),
        inputs: read(&inputs)?,
    })
}

/// Whether the start of a file can be safetensors.
pub fn is_safetensors(start: &[u8]) -> bool {
    start.len() > 8 && start[8] == b'{' && start[4..8] == [0; 4]
}

fn read_header(reader: &mut (impl Read + Seek), place: &str) -> Result<(u64, Metadata), DataError> {
    let foreign = |found: String| {
        DataError::format(
            place,
            "a safetensors file",
            found,
            "it is another kind of file, or damaged: get it again",
        )
    };
    let mut header = read_exactly(reader, 8, place, "the length of the header")?;
    let length = header
        .iter()
        .rev()
        .fold(0_u64, |n, &byte| n << 8 | u64::from(byte));
    if length > LONGEST_HEADER {
        return Err(foreign(format!("a header of {length} bytes")));
    }
    header.extend(read_exactly(reader, length as usize, place, "the header")?);
    let metadata: Metadata =
        serde_json::from_slice(&header[8..]).map_err(|error| foreign(error.to_string()))?;
    let expected = header.len() as u64 + metadata.data_len() as u64;
    let found = reader
        .seek(SeekFrom::End(0))
        .map_err(|error| damage(error, place))?;
    if found < expected {
        return Err(DataError::Truncated {
            place: place.to_owned(),
            expected: format!("{expected} bytes"),
            found: format!("{found} bytes"),
        });
    }
    Ok((header.len() as u64, metadata))
}

fn read_tensor(
    reader: &mut (impl Read + Seek),
    start: u64,
    metadata: &Metadata,
    name: &str,
    place: &str,
) -> Result<Array, DataError> {
    let place = format!("{place}, tensor {name}");
    let info = metadata.info(name).ok_or_else(|| {
        DataError::format(&place, "the tensor", "no such tensor", "get the file again")
    })?;
    let element = match info.dtype {
        Dtype::U8 | Dtype::BOOL => Element::U8,
        Dtype::I8 => Element::I8,
        Dtype::I16 => Element::I16,
        Dtype::U16 => Element::U16,
        Dtype::I32 => Element::I32,
        Dtype::U32 => Element::U32,
        Dtype::I64 => Element::I64,
        Dtype::U64 => Element::U64,
        Dtype::F16 => Element::F16,
        Dtype::BF16 => Element::Bf16,
        Dtype::F32 => Element::F32,
        Dtype::F64 => Element::F64,
        other => {
            return Err(DataError::format(
                place,
                "numbers of the types F16, BF16, F32, F64, U8..U64 or I8..I64",
                format!("{other:?}"),
                "convert the tensor to F32 first",
            ));
        }
    };
    let (from, to) = info.data_offsets;
    let count = count(&info.shape, element.size(), &place)?;
    if to.checked_sub(from) != Some(count * element.size()) {
        return Err(DataError::format(
            place,
            format!(
                "{} bytes for the shape {:?}",
                count * element.size(),
                info.shape
            ),
            format!("the bytes {from}..{to}"),
            "the header is damaged: get the file again",
        ));
    }
    reader
        .seek(SeekFrom::Start(start + from as u64))
        .map_err(|error| damage(error, &place))?;
    let mut part = reader.take((to - from) as u64);
    Ok(Array {
        shape: info.shape.clone(),
        numbers: read_numbers(&mut part, element, false, count, &place)?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;

    use safetensors::tensor::TensorView;
    use tempfile::TempDir;

    use super::*;

    fn write(path: &Path, inputs: &[f32], shape: &[usize], labels: &[i64], classes: bool) {
        let inputs: Vec<u8> = inputs.iter().flat_map(|x| x.to_le_bytes()).collect();
        let count = labels.len();
        let labels: Vec<u8> = labels.iter().flat_map(|x| x.to_le_bytes()).collect();
        let views = [
            (
                "features",
                TensorView::new(Dtype::F32, shape.to_vec(), &inputs).unwrap(),
            ),
            (
                "labels",
                TensorView::new(Dtype::I64, vec![count], &labels).unwrap(),
            ),
        ];
        let text = HashMap::from([("classes".to_owned(), "cat,dog".to_owned())]);
        let bytes = safetensors::serialize(views, classes.then_some(text)).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn features_and_images_with_labels() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("set.safetensors");
        write(&path, &[1., 2., 3., 4., 5., 6.], &[2, 3], &[1, 0], true);
        let DataSet::Features(set) = read(&path, &ReadOptions::default()).unwrap() else {
            panic!("features");
        };
        assert_eq!(set.values(), [1., 2., 3., 4., 5., 6.]);
        assert_eq!(set.labels().values, Some(vec![1, 0]));
        assert_eq!(set.labels().names, ["cat", "dog"]);
        write(&path, &[0.5; 12], &[2, 1, 2, 3], &[1, 4], false);
        let DataSet::Images(set) = read(&path, &ReadOptions::default()).unwrap() else {
            panic!("images");
        };
        assert_eq!(set.shape(), [2, 1, 2, 3]);
        assert_eq!(set.labels().classes(), 5);
        assert!(is_safetensors(&fs::read(&path).unwrap()));
    }

    #[test]
    fn damage_is_named() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("set.safetensors");
        let error = || {
            read(&path, &ReadOptions::default())
                .unwrap_err()
                .to_string()
        };
        write(&path, &[0.; 6], &[2, 3], &[1, 0, 1], false);
        assert!(error().contains("2 examples and 3 labels"));
        write(&path, &[0.; 6], &[2, 3], &[1, 5], true);
        assert!(error().contains("a class in 0..2"));
        write(&path, &[0., f32::INFINITY], &[2, 1], &[1, 0], false);
        assert!(error().contains("number 0 of example 1 is inf"));
        let whole = fs::read(&path).unwrap();
        for (content, message) in [
            (&whole[..whole.len() - 1], "cut short"),
            (&whole[..40], "cut short"),
            (b"", "cut short"),
            (
                b"some foreign text that is long enough",
                "another kind of file",
            ),
            (b"\x02\0\0\0\0\0\0\0{}", "is empty"),
        ] {
            fs::write(&path, content).unwrap();
            assert!(error().contains(message), "{}", error());
        }
    }
}
