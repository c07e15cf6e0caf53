//! NPY and NPZ, the formats of NumPy.
//!
//! NPY: `93 NUMPY`, version, length, a Python dictionary with `descr`, `fortran_order` and `shape`, then
//! the numbers. NPZ: a zip archive of NPY files. Both orders and both byte orders are read; arrays in
//! Fortran order are put into C order.

use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::array::{Array, Arrays, Element, Numbers, choose, count, read_numbers};
use super::error::DataError;
use super::idx::name;
use super::options::ReadOptions;
use super::read::DataSet;
use super::stream::{Limited, MOST_UNPACKED, expect_end, open, read_exactly};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";
/// The longest header: what version 1.0 can say. NumPy itself refuses 10,000 bytes and more.
const LONGEST_HEADER: usize = 1 << 16;

/// Reads one array. `place` names it in errors.
pub fn read_array(reader: &mut dyn Read, place: &str) -> Result<Array, DataError> {
    let foreign = |found: String| {
        DataError::format(
            place,
            "an NPY array as numpy.save writes it",
            found,
            "it is another kind of file, or damaged",
        )
    };
    let start = read_exactly(reader, 8, place, "the NPY header")?;
    if !start.starts_with(MAGIC) {
        return Err(foreign(format!(
            "a file that starts with {:02x?}",
            &start[..6]
        )));
    }
    let width = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => return Err(foreign(format!("NPY version {version}"))),
    };
    let length = read_exactly(reader, width, place, "the NPY header")?;
    let length = length
        .iter()
        .rev()
        .fold(0_usize, |n, &byte| n << 8 | usize::from(byte));
    if length > LONGEST_HEADER {
        return Err(foreign(format!("a header of {length} bytes")));
    }
    let text = read_exactly(reader, length, place, "the NPY header")?;
    let text = String::from_utf8_lossy(&text);
    let header =
        Header::parse(&text).ok_or_else(|| foreign(format!("the header {:?}", text.trim())))?;
    let element = header.element.ok_or_else(|| {
        DataError::format(
            place,
            "numbers of the types f2, f4, f8, u1..u8, i1..i8 or b1",
            format!("the type {}", header.descr),
            "convert it with array.astype('float32') first",
        )
    })?;
    let count = count(&header.shape, element.size(), place)?;
    let numbers = read_numbers(reader, element, header.big_endian, count, place)?;
    expect_end(
        reader,
        place,
        &format!("numbers for the shape {:?}", header.shape),
    )?;
    let numbers = if header.fortran {
        match numbers {
            Numbers::U8(values) => Numbers::U8(c_order(&values, &header.shape)),
            Numbers::I64(values) => Numbers::I64(c_order(&values, &header.shape)),
            Numbers::F32(values) => Numbers::F32(c_order(&values, &header.shape)),
        }
    } else {
        numbers
    };
    Ok(Array {
        shape: header.shape,
        numbers,
    })
}

/// An array of f32 as a file of version 1.0, as `numpy.save` writes it.
pub fn f32_bytes(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let mut bytes = header("<f4", shape);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// An array of bytes as such a file.
pub fn u8_bytes(shape: &[usize], values: &[u8]) -> Vec<u8> {
    let mut bytes = header("|u1", shape);
    bytes.extend_from_slice(values);
    bytes
}

fn header(kind: &str, shape: &[usize]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let header = format!(
        "{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}",
        sizes.trim_end()
    );
    // Magic, version, length, header and a line break fill whole blocks of 64 bytes.
    let total = (MAGIC.len() + 4 + header.len() + 1).next_multiple_of(64);
    let length = total - MAGIC.len() - 4;
    let mut bytes = Vec::with_capacity(total);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    let length = u16::try_from(length).expect("a few sizes fit into 65,535 characters");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// Reads inputs from an NPY file, and labels from `options.labels` or from a file beside it: `y_train.npy`
/// for `x_train.npy`, `labels.npy` for `images.npy` or `features.npy`, `NAME_labels.npy` for `NAME.npy`.
pub fn read_npy(path: &Path, options: &ReadOptions) -> Result<DataSet, DataError> {
    npy_arrays(path, options)?.into_set(path.display().to_string())
}

/// The arrays of [`read_npy`].
pub(crate) fn npy_arrays(path: &Path, options: &ReadOptions) -> Result<Arrays, DataError> {
    let read = |path: &Path| read_array(&mut open(path)?, &path.display().to_string());
    let labels = options.labels.clone().or_else(|| labels_beside(path));
    Ok(Arrays {
        labels: labels.as_deref().map(read).transpose()?,
        class_names: Vec::new(),
        inputs: read(path)?,
    })
}

/// Reads inputs and labels from an NPZ file.
pub fn read_npz(path: &Path, options: &ReadOptions) -> Result<DataSet, DataError> {
    npz(open(path)?, options, path.display().to_string())
}

/// The arrays of [`read_npz`].
pub(crate) fn npz_arrays(path: &Path, options: &ReadOptions) -> Result<Arrays, DataError> {
    unpack_npz(
        open(path)?,
        options,
        &path.display().to_string(),
        MOST_UNPACKED,
    )
}

/// Reads inputs and labels from the bytes of an NPZ file. `place` names it in errors.
pub fn npz(
    content: impl Read + Seek,
    options: &ReadOptions,
    place: String,
) -> Result<DataSet, DataError> {
    unpack_npz(content, options, &place, MOST_UNPACKED)?.into_set(place)
}

fn unpack_npz(
    content: impl Read + Seek,
    options: &ReadOptions,
    place: &str,
    limit: u64,
) -> Result<Arrays, DataError> {
    let broken = |error: zip::result::ZipError| {
        DataError::format(
            place,
            "an NPZ archive as numpy.savez writes it",
            error.to_string(),
            "the file is cut short, damaged or of another kind: get it again",
        )
    };
    let mut archive = ZipArchive::new(content).map_err(broken)?;
    let mut names = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(broken)?;
        let entry = String::from_utf8_lossy(entry.name_raw()).into_owned();
        names.push(entry.trim_end_matches(".npy").to_owned());
    }
    if names.is_empty() {
        return Err(DataError::Empty {
            place: place.to_owned(),
            expected: "arrays".to_owned(),
        });
    }
    let (inputs, labels) = choose(&names, options, place)?;
    let mut read = |wanted: &String| {
        let index = names.iter().position(|name| name == wanted).unwrap_or(0);
        let mut entry = Limited::new(archive.by_index(index).map_err(broken)?, limit);
        read_array(&mut entry, &format!("{place}, array {wanted}"))
    };
    Ok(Arrays {
        labels: labels.as_ref().map(&mut read).transpose()?,
        class_names: Vec::new(),
        inputs: read(&inputs)?,
    })
}

fn labels_beside(path: &Path) -> Option<PathBuf> {
    let file = name(path);
    let stem = file.strip_suffix(".npy").unwrap_or(&file);
    let mut stems = vec![format!("{stem}_labels")];
    for (inputs, labels) in [
        ("images", "labels"),
        ("features", "labels"),
        ("inputs", "labels"),
    ] {
        stems.push(stem.replace(inputs, labels));
    }
    for (inputs, labels) in [("x", "y"), ("X", "y")] {
        if let Some(rest) = stem.strip_prefix(inputs) {
            stems.push(format!("{labels}{rest}"));
        }
    }
    stems
        .into_iter()
        .filter(|candidate| candidate != stem)
        .map(|stem| path.with_file_name(format!("{stem}.npy")))
        .find(|path| path.is_file())
}

struct Header {
    descr: String,
    element: Option<Element>,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let rest = text.split_once(&format!("'{key}'"))?.1;
            Some(rest.split_once(':')?.1.trim_start())
        };
        let descr = value("descr")?.strip_prefix('\'')?.split_once('\'')?.0;
        let fortran = value("fortran_order")?.starts_with("True");
        let shape = value("shape")?.strip_prefix('(')?.split_once(')')?.0;
        let shape = shape
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .map(|size| size.trim_end_matches('L').parse().ok())
            .collect::<Option<Vec<usize>>>()?;
        let element = match descr.trim_start_matches(['<', '>', '|', '=']) {
            "u1" | "b1" => Some(Element::U8),
            "i1" => Some(Element::I8),
            "i2" => Some(Element::I16),
            "u2" => Some(Element::U16),
            "i4" => Some(Element::I32),
            "u4" => Some(Element::U32),
            "i8" => Some(Element::I64),
            "u8" => Some(Element::U64),
            "f2" => Some(Element::F16),
            "f4" => Some(Element::F32),
            "f8" => Some(Element::F64),
            _ => None,
        };
        Some(Self {
            descr: descr.to_owned(),
            element,
            big_endian: descr.starts_with('>'),
            fortran,
            shape,
        })
    }
}

/// From Fortran order (first index fastest) to C order (last index fastest).
fn c_order<T: Copy>(values: &[T], shape: &[usize]) -> Vec<T> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1;
    for &size in shape {
        strides.push(stride);
        stride *= size;
    }
    let mut index = vec![0; shape.len()];
    let mut offset = 0;
    let mut ordered = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        ordered.push(values[offset]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            offset -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    ordered
}

#[cfg(test)]
mod tests;
