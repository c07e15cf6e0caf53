//! A density in a safetensors file, f64: mean, directions, the variance of the rest, and per class its mean, the lower factor of its covariance
//! and its constant. The metadata say what it is a density of.

use std::collections::HashMap;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::{ClassGaussian, FeatureDensity};
use crate::metrics::MetricError;

const FORMAT: &str = "circulant-feature-density-1";

impl FeatureDensity {
    /// As the bytes of a safetensors file. `of` says what it is a density of, for [`Self::from_bytes`] to give back.
    ///
    /// ```
    /// use circulant::baselines::FeatureDensity;
    ///
    /// let density = FeatureDensity::fit(&[0.0, 0.1, 5.0, 5.1], 1, &[0, 0, 1, 1], 2, 1)?;
    /// let (again, of) = FeatureDensity::from_bytes(&density.to_bytes("a model")?)?;
    /// assert_eq!(of, "a model");
    /// assert_eq!(again.log_densities(&[2.0])?, density.log_densities(&[2.0])?);
    /// # Ok::<(), circulant::metrics::MetricError>(())
    /// ```
    pub fn to_bytes(&self, of: &str) -> Result<Vec<u8>, MetricError> {
        let bytes = |values: &mut dyn Iterator<Item = f64>| -> Vec<u8> {
            values.flat_map(f64::to_le_bytes).collect()
        };
        let (r, classes) = (self.directions.len(), self.classes.len());
        let of_classes = |pick: fn(&ClassGaussian) -> &[f64]| {
            bytes(&mut self.classes.iter().flat_map(pick).copied())
        };
        let constants = self.classes.iter().map(|class| class.constant);
        let parts = [
            (
                "mean",
                vec![self.columns],
                bytes(&mut self.mean.iter().copied()),
            ),
            (
                "directions",
                vec![r, self.columns],
                bytes(&mut self.directions.iter().flatten().copied()),
            ),
            (
                "rest",
                vec![usize::from(self.rest.is_some())],
                bytes(&mut self.rest.into_iter()),
            ),
            ("class_means", vec![classes, r], of_classes(|c| &c.mean)),
            (
                "class_factors",
                vec![classes, r, r],
                of_classes(|c| &c.lower),
            ),
            (
                "class_constants",
                vec![classes],
                bytes(&mut constants.clone()),
            ),
        ];
        let mut views = Vec::with_capacity(parts.len());
        for (name, shape, bytes) in &parts {
            let view = TensorView::new(Dtype::F64, shape.clone(), bytes);
            views.push((*name, view.map_err(broken)?));
        }
        let metadata = [("format", FORMAT), ("of", of)];
        let metadata: HashMap<String, String> = metadata
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        safetensors::serialize(views, Some(metadata)).map_err(broken)
    }

    /// From the bytes of such a file, and what it is a density of.
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, String), MetricError> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;
        let note = |key: &str| {
            header
                .metadata()
                .as_ref()
                .and_then(|notes| notes.get(key))
                .cloned()
        };
        if note("format").as_deref() != Some(FORMAT) {
            return Err(broken("another kind of file"));
        }
        let read = |name: &str| -> Result<(Vec<usize>, Vec<f64>), MetricError> {
            let tensor = tensors.tensor(name).map_err(broken)?;
            if tensor.dtype() != Dtype::F64 {
                return Err(broken(format!("{name} of {:?}", tensor.dtype())));
            }
            let (chunks, _) = tensor.data().as_chunks::<8>();
            let values: Vec<f64> = chunks
                .iter()
                .map(|chunk| f64::from_le_bytes(*chunk))
                .collect();
            match values.iter().all(|x| x.is_finite()) {
                true => Ok((tensor.shape().to_vec(), values)),
                false => Err(broken(format!("a number in {name} that is not finite"))),
            }
        };
        let (shape, directions) = read("directions")?;
        let &[r, columns] = &shape[..] else {
            return Err(broken(format!("directions of the shape {shape:?}")));
        };
        let (shape, constants) = read("class_constants")?;
        let classes = constants.len();
        if r == 0 || columns == 0 || shape.len() != 1 {
            return Err(broken("no directions"));
        }
        let sized = |name: &str, expected: &[usize]| {
            let (shape, values) = read(name)?;
            match shape == expected {
                true => Ok(values),
                false => Err(broken(format!(
                    "{name} of the shape {shape:?}, not {expected:?}"
                ))),
            }
        };
        let (mean, means) = (
            sized("mean", &[columns])?,
            sized("class_means", &[classes, r])?,
        );
        let factors = sized("class_factors", &[classes, r, r])?;
        let (_, rest) = read("rest")?;
        let diagonal = |factor: &[f64]| factor.iter().step_by(r + 1).all(|x| *x > 0.0);
        if !factors.chunks_exact(r * r).all(diagonal) || rest.iter().any(|x| *x <= 0.0) {
            return Err(broken("a variance that is not positive"));
        }
        let of_class = |((mean, lower), constant): ((&[f64], &[f64]), &f64)| ClassGaussian {
            mean: mean.to_vec(),
            lower: lower.to_vec(),
            constant: *constant,
        };
        let classes = means
            .chunks_exact(r)
            .zip(factors.chunks_exact(r * r))
            .zip(&constants);
        let density = Self {
            columns,
            mean,
            directions: directions
                .chunks_exact(columns)
                .map(<[f64]>::to_vec)
                .collect(),
            rest: rest.first().copied(),
            classes: classes.map(of_class).collect(),
        };
        Ok((density, note("of").unwrap_or_default()))
    }

    /// Features of one input.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

fn broken(found: impl std::fmt::Display) -> MetricError {
    MetricError::Record {
        what: "a feature density",
        found: found.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_the_same_densities_and_no_file_panics() {
        for (columns, directions) in [(1, 1), (3, 2), (4, 9)] {
            let features: Vec<f64> = (0..20 * columns)
                .map(|i| ((i * i) as f64 * 0.37).sin())
                .collect();
            let labels: Vec<usize> = (0..20).map(|i| i % 3).collect();
            let density = FeatureDensity::fit(&features, columns, &labels, 4, directions).unwrap();
            let bytes = density.to_bytes("seven").unwrap();
            let (again, of) = FeatureDensity::from_bytes(&bytes).unwrap();
            assert_eq!((of.as_str(), again.columns()), ("seven", columns));
            let test: Vec<f64> = (0..5 * columns).map(|i| (i as f64).cos()).collect();
            assert_eq!(again.log_densities(&test), density.log_densities(&test));
            for length in 0..bytes.len() {
                assert!(FeatureDensity::from_bytes(&bytes[..length]).is_err());
            }
            // Whatever is read can be asked.
            for place in 0..bytes.len() {
                let mut other = bytes.clone();
                other[place] ^= 0x55;
                if let Ok((density, _)) = FeatureDensity::from_bytes(&other) {
                    let _ = density.log_densities(&vec![0.5; density.columns()]);
                }
            }
        }
        let other = safetensors::serialize(Vec::<(&str, TensorView<'_>)>::new(), None).unwrap();
        let error = FeatureDensity::from_bytes(&other).unwrap_err().to_string();
        assert!(
            error.contains("a feature density") && error.contains("another kind of file"),
            "{error}"
        );
    }
}
