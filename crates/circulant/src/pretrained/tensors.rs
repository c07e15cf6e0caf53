//! From the tensors of a file to the values of parameters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::{DType, TensorData};
use pytorch_reader::PytorchReader;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::PretrainedError;
use super::names::{NameMap, Rule, numbers_of, with_numbers};

/// The first bytes of the zip archives and of the plain pickles that `torch.save` writes.
const PICKLES: [&[u8]; 2] = [b"PK\x03\x04", b"\x80\x02"];

/// Where training programs put the parameters beside other things.
const KEYS: [&str; 4] = ["state_dict", "model", "model_state_dict", "state_dict_ema"];

/// Whether [`File::values`] reads it.
pub(super) fn is_float(kind: Dtype) -> bool {
    matches!(kind, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16)
}

/// A checkpoint in memory, as safetensors.
pub(super) struct File {
    pub(super) path: PathBuf,
    bytes: Vec<u8>,
    /// In the order of names.
    names: Vec<String>,
}

impl File {
    pub(super) fn read(path: &Path) -> Result<Self, PretrainedError> {
        let bytes = std::fs::read(path).map_err(|source| PretrainedError::Read {
            path: path.into(),
            source,
        })?;
        let bytes = if PICKLES.iter().any(|start| bytes.starts_with(start)) {
            unpickled(path)?
        } else {
            bytes
        };
        let tensors =
            SafeTensors::deserialize(&bytes).map_err(|error| PretrainedError::Malformed {
                path: path.into(),
                message: error.to_string(),
            })?;
        let mut names: Vec<String> = tensors.names().into_iter().map(str::to_owned).collect();
        names.sort();
        Ok(Self {
            path: path.into(),
            bytes,
            names,
        })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().map(String::as_str)
    }

    pub(super) fn tensors(&self) -> Result<SafeTensors<'_>, PretrainedError> {
        SafeTensors::deserialize(&self.bytes).map_err(|error| PretrainedError::Malformed {
            path: self.path.clone(),
            message: error.to_string(),
        })
    }

    pub(super) fn tensor<'a>(
        &self,
        tensors: &SafeTensors<'a>,
        name: &str,
    ) -> Result<TensorView<'a>, PretrainedError> {
        tensors
            .tensor(name)
            .map_err(|error| PretrainedError::Malformed {
                path: self.path.clone(),
                message: error.to_string(),
            })
    }

    /// The values of a tensor, row-major.
    pub(super) fn values(
        &self,
        name: &str,
        tensor: &TensorView<'_>,
    ) -> Result<Vec<f64>, PretrainedError> {
        let number_type = match tensor.dtype() {
            Dtype::F64 => DType::F64,
            Dtype::F32 => DType::F32,
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            other => {
                return Err(PretrainedError::NumberType {
                    path: self.path.clone(),
                    name: name.to_owned(),
                    found: format!("{other:?}"),
                });
            }
        };
        let shape = tensor.shape().to_vec();
        let data = TensorData::from_bytes_vec(tensor.data().to_vec(), shape, number_type);
        Ok(data
            .convert::<f64>()
            .try_into_vec()
            .expect("converted to f64 just before"))
    }
}

/// The tensors of a file of `torch.save`. No code of the file is run.
fn unpickled(path: &Path) -> Result<Vec<u8>, PretrainedError> {
    let malformed = |message: String| PretrainedError::Malformed {
        path: path.into(),
        message,
    };
    let nested = KEYS.iter().find_map(|key| {
        let reader = PytorchReader::with_top_level_key(path, key).ok()?;
        (!reader.is_empty()).then_some(reader)
    });
    let reader = match nested {
        Some(reader) => reader,
        None => PytorchReader::new(path).map_err(|error| malformed(error.to_string()))?,
    };
    let mut tensors = Vec::new();
    for (name, tensor) in reader.tensors() {
        let kind = match tensor.dtype() {
            pytorch_reader::DType::F64 => Dtype::F64,
            pytorch_reader::DType::F32 => Dtype::F32,
            pytorch_reader::DType::F16 => Dtype::F16,
            pytorch_reader::DType::BF16 => Dtype::BF16,
            other => {
                return Err(PretrainedError::NumberType {
                    path: path.into(),
                    name: name.clone(),
                    found: format!("{other:?}"),
                });
            }
        };
        let bytes = tensor
            .read()
            .map_err(|error| malformed(error.to_string()))?;
        tensors.push((name.as_str(), kind, tensor.shape().to_vec(), bytes));
    }
    let views: Result<Vec<_>, _> = tensors
        .iter()
        .map(|(name, kind, shape, bytes)| {
            Ok((*name, TensorView::new(*kind, shape.clone(), bytes)?))
        })
        .collect();
    views
        .and_then(|views| safetensors::serialize(views, None))
        .map_err(|error| malformed(error.to_string()))
}

/// A tensor of the file and the parameters that it goes to.
struct Assignment<'a> {
    name: &'a str,
    targets: Vec<String>,
    transposed: bool,
}

/// The values of every parameter that is not kept, if the file and the map have exactly these.
pub(super) fn converted(
    file: &File,
    names: &NameMap,
    shapes: &BTreeMap<String, Vec<usize>>,
) -> Result<BTreeMap<String, Vec<f64>>, PretrainedError> {
    let assignments = assignments(file, names, shapes)?;
    let tensors = file.tensors()?;
    let mut all = BTreeMap::new();
    for assignment in assignments {
        let name = assignment.name;
        let tensor = file.tensor(&tensors, name)?;
        let part = &shapes[&assignment.targets[0]];
        for target in &assignment.targets {
            // Parts are equal, so all targets must have the shape of the first.
            let expected = source_shape(part, &assignment);
            if !fits(tensor.shape(), &expected, &assignment) || shapes[target] != *part {
                return Err(PretrainedError::Shape {
                    path: file.path.clone(),
                    name: name.to_owned(),
                    target: target.clone(),
                    expected: source_shape(&shapes[target], &assignment),
                    found: tensor.shape().to_vec(),
                });
            }
        }
        let values = file.values(name, &tensor)?;
        let count = values.len() / assignment.targets.len();
        for (position, target) in assignment.targets.into_iter().enumerate() {
            let values = &values[position * count..(position + 1) * count];
            let values = match part[..] {
                [inputs, outputs] if assignment.transposed => transpose(values, inputs, outputs),
                _ => values.to_vec(),
            };
            all.insert(target, values);
        }
    }
    Ok(all)
}

/// Who goes where, with every name of both sides accounted for.
fn assignments<'a>(
    file: &'a File,
    names: &NameMap,
    shapes: &BTreeMap<String, Vec<usize>>,
) -> Result<Vec<Assignment<'a>>, PretrainedError> {
    let matches_any = |patterns: &[String], name: &str| {
        let mut patterns = patterns.iter();
        patterns.any(|pattern| numbers_of(pattern, name).is_some())
    };
    let kept = |target: &str| matches_any(&names.kept, target);
    let (mut found, mut unused) = (Vec::new(), Vec::new());
    let mut sources = BTreeMap::<String, &str>::new();
    for name in file.names() {
        let short = name.strip_prefix(&names.prefix).unwrap_or(name);
        if matches_any(&names.ignored, short) {
            continue;
        }
        let place = |rule: &Rule| {
            let numbers = numbers_of(&rule.source, short)?;
            let targets = rule.targets.iter();
            let targets: Vec<_> = targets
                .map(|target| with_numbers(target, &numbers))
                .collect();
            Some((targets, rule.transposed))
        };
        let Some((targets, transposed)) = names.rules.iter().find_map(place) else {
            unused.push(name.to_owned());
            continue;
        };
        let known = |target: &String| shapes.contains_key(target) && !kept(target);
        if targets.is_empty() || !targets.iter().all(known) {
            unused.push(format!("{name} (for {})", targets.join(", ")));
            continue;
        }
        for target in &targets {
            if let Some(first) = sources.insert(target.clone(), name) {
                return Err(PretrainedError::Twice {
                    path: file.path.clone(),
                    target: target.clone(),
                    first: first.to_owned(),
                    second: name.to_owned(),
                });
            }
        }
        found.push(Assignment {
            name,
            targets,
            transposed,
        });
    }
    let path = file.path.clone();
    if !unused.is_empty() {
        return Err(PretrainedError::Unused {
            path,
            names: unused,
            expected: shapes.keys().cloned().collect(),
        });
    }
    let missing = shapes
        .keys()
        .filter(|target| !sources.contains_key(*target) && !kept(target));
    let missing: Vec<String> = missing.cloned().collect();
    if missing.is_empty() {
        return Ok(found);
    }
    Err(PretrainedError::Missing {
        path,
        names: missing,
        found: file.names.clone(),
    })
}

/// The shape of the tensor whose parts have the shape `part` as parameters.
fn source_shape(part: &[usize], assignment: &Assignment<'_>) -> Vec<usize> {
    let mut shape = match *part {
        [inputs, outputs] if assignment.transposed => vec![outputs, inputs],
        _ => part.to_vec(),
    };
    if let Some(first) = shape.first_mut() {
        *first *= assignment.targets.len();
    }
    shape
}

/// Whether a tensor has the shape, or, for a transposed one, a kernel with as many values per output.
fn fits(found: &[usize], expected: &[usize], assignment: &Assignment<'_>) -> bool {
    let kernel = || {
        let (Some((first, rest)), [outputs, inputs]) = (found.split_first(), expected) else {
            return false;
        };
        assignment.transposed && first == outputs && rest.iter().product::<usize>() == *inputs
    };
    found == expected || kernel()
}

/// `[out, in]` to `[in, out]`.
fn transpose(values: &[f64], inputs: usize, outputs: usize) -> Vec<f64> {
    let entries = (0..inputs).flat_map(|i| (0..outputs).map(move |o| (i, o)));
    entries.map(|(i, o)| values[o * inputs + i]).collect()
}
