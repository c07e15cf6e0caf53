//! A trained classifier: what the program calls a run, in memory.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use anyhow::{bail, ensure};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use circulant::bayes::{Bayesian, PredictiveConfig};
use circulant::geometry::{CertificateConfig, Target};
use circulant::models::ImageClassifier;
use circulant_cli::bindings::{Inspected, LoadedRun, describe};
use circulant_data::Normalisation;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::{Number, array, input, integers, of_number_type, slice};
use crate::errors::{of_anyhow, value_error};
use crate::fit::{Task, train};
use crate::table::{Columns, Rows, different};
use crate::threads::{Stop, run_long};
use crate::training::{Progress, settings_of};

/// Rows that are predicted between two looks at Ctrl-C.
const ROWS_AT_A_TIME: usize = 2048;

/// A trained classifier.
#[pyclass(frozen, module = "circulant._engine")]
pub struct Classifier {
    run: Mutex<LoadedRun>,
    columns: Columns,
    classes: usize,
    steps: u64,
    loss: Option<f64>,
}

#[pymethods]
impl Classifier {
    /// Trains on rows `[rows, columns]` with the classes `0, 1, ...`; returns the classifier and, if training was stopped, why.
    ///
    /// `settings` are those of the program's `config.toml`, as JSON. `progress(step, steps, loss)` is called now and then.
    #[staticmethod]
    #[pyo3(signature = (settings, image, x, labels, weights, class_names, standardise, threads, progress, begin, seen))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them one by one")]
    fn fit<'py>(
        py: Python<'py>,
        settings: &str,
        image: [usize; 3],
        x: &Bound<'py, PyAny>,
        labels: &Bound<'py, PyAny>,
        weights: Option<&Bound<'py, PyAny>>,
        class_names: Vec<String>,
        standardise: bool,
        threads: usize,
        progress: Option<&Bound<'py, PyAny>>,
        begin: Option<&Bound<'py, Self>>,
        seen: usize,
    ) -> PyResult<(Self, Option<Bound<'py, PyAny>>)> {
        let config = settings_of(settings).map_err(of_anyhow)?;
        let steps = config.training.steps;
        let labels = integers("labels", labels)?;
        let weights = weights
            .map(|weights| input::<f64>("weights", weights))
            .transpose()?;
        let told = Progress::default();
        let tick = |_: Python<'_>| -> PyResult<()> {
            let Some(progress) = progress else {
                return Ok(());
            };
            let loss = f64::from_bits(told.loss.load(Ordering::Relaxed));
            progress.call1((told.step.load(Ordering::Relaxed), steps, loss))?;
            Ok(())
        };
        let (trained, failed) = of_number_type!(x, T => {
            let x = input::<T>("x", x)?;
            let task = Task {
                config,
                image,
                rows: Rows { values: slice(&x)?, columns: image.iter().product() },
                labels: slice(&labels)?,
                weights: weights.as_ref().map(slice).transpose()?,
                class_names,
                standardise,
                begin: begin.map(|begin| (begin.get(), seen)),
            };
            run_long(py, threads, tick, |stop| train(task, stop, &told))
        })?;
        match (trained, failed) {
            (Ok(trained), None) => Ok((trained, None)),
            (Ok(trained), Some(error)) => Ok((
                trained,
                Some(error.into_value(py).into_bound(py).into_any()),
            )),
            // Asked to end before there was anything.
            (Err(_), Some(error)) => Err(error),
            (Err(error), None) => Err(of_anyhow(error)),
        }
    }

    /// Opens the folder of a run, or the JSON file of a saved classifier.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Self::open(&path)).map_err(of_anyhow)
    }

    /// Writes `path`, a JSON file, and the values beside it.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.write(&path)).map_err(of_anyhow)
    }

    /// The bytes of the two files.
    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let files = || -> anyhow::Result<_> {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("classifier.json");
            self.write(&path)?;
            let values = std::fs::read(path.with_extension("safetensors"))?;
            Ok((std::fs::read(&path)?, values))
        };
        let (description, values) = py.detach(files).map_err(of_anyhow)?;
        Ok((PyBytes::new(py, &description), PyBytes::new(py, &values)))
    }

    /// From the bytes of the two files.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, description: Vec<u8>, values: Vec<u8>) -> PyResult<Self> {
        let open = || -> anyhow::Result<_> {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("classifier.json");
            std::fs::write(path.with_extension("safetensors"), values)?;
            std::fs::write(&path, description)?;
            Self::open(&path)
        };
        py.detach(open).map_err(of_anyhow)
    }

    /// Class probabilities `[rows, classes]`, predictive entropy and expected entropy, from so many posterior samples.
    #[pyo3(signature = (x, samples, seed, threads))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        samples: usize,
        seed: u64,
        threads: usize,
    ) -> PyResult<[Bound<'py, PyArray1<f64>>; 3]> {
        let config = PredictiveConfig::new()
            .with_samples(if self.lock().is_bayesian() {
                samples
            } else {
                1
            })
            .with_seed(seed);
        let network = self.lock().network.clone();
        let (predictions, failed) = of_number_type!(x, T => {
            let x = input::<T>("x", x)?;
            let rows = self.rows(slice(&x)?)?;
            run_long(py, threads, |_| Ok(()), |stop| self.predict_rows(&network, &config, rows, stop))
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let predictions = predictions.map_err(of_anyhow)?;
        Ok(predictions.map(|values| array(py, values)))
    }

    /// Radii around rows inside which the decision of the posterior's mean cannot change, and what they rest on.
    fn certify<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let network = self.lock().network.clone();
        let (certified, failed) = of_number_type!(x, T => {
            let x = input::<T>("x", x)?;
            let rows = self.rows(slice(&x)?)?;
            run_long(py, threads, |_| Ok(()), |_| self.certify_rows(&network, rows))
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let certified = certified.map_err(of_anyhow)?;
        let dict = PyDict::new(py);
        dict.set_item("predicted", array(py, certified.classes))?;
        dict.set_item("margin", array(py, certified.margins))?;
        dict.set_item("radius", array(py, certified.radii))?;
        dict.set_item("lipschitz", certified.lipschitz)?;
        dict.set_item("norms", certified.norms)?;
        dict.set_item("rounding", certified.rounding)?;
        dict.set_item("proven", certified.proven)?;
        Ok(dict)
    }

    /// Writes the page with norms, spectra and filters beside the prior.
    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let write = || {
            let run = self.lock();
            Inspected::new(&run)?.write(&run, &path)
        };
        py.detach(write).map_err(of_anyhow)
    }

    /// The figures of the page: names and SVG texts.
    fn figures(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let draw = || -> anyhow::Result<_> {
            let run = self.lock();
            let document = Inspected::new(&run)?.document(&run);
            let drawings = document.drawings().into_iter();
            Ok(drawings
                .map(|(name, drawing)| (name, drawing.standalone()))
                .collect())
        };
        py.detach(draw).map_err(of_anyhow)
    }

    /// All settings, as the program's `config.toml` has them.
    #[getter]
    fn settings(&self) -> String {
        self.lock().folder.config.to_toml()
    }

    /// `[channels, height, width]`.
    #[getter]
    fn image(&self) -> [usize; 3] {
        self.lock().folder.facts.data.image()
    }

    /// The number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.classes
    }

    /// The names of the classes; empty when unknown.
    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.lock().folder.facts.data.class_names.clone()
    }

    /// Steps of training.
    #[getter]
    fn steps(&self) -> u64 {
        self.steps
    }

    /// The loss of the last step, if it is known.
    #[getter]
    fn loss(&self) -> Option<f64> {
        self.loss
    }

    /// Real parameters of the model without those of the posterior's spread, and those of them that are biases.
    #[getter]
    fn parameters(&self) -> (usize, usize) {
        let run = self.lock();
        (run.folder.facts.weights, run.folder.facts.biases)
    }
}

struct CertifiedRows {
    classes: Vec<i64>,
    margins: Vec<f64>,
    radii: Vec<f64>,
    lipschitz: f64,
    norms: Vec<(String, f64)>,
    rounding: f64,
    proven: bool,
}

impl Classifier {
    /// Of a run, with what is done to its columns.
    pub fn new(run: LoadedRun, columns: Columns, loss: Option<f64>) -> Self {
        Self {
            classes: run.folder.facts.data.classes,
            steps: run.steps,
            run: Mutex::new(run),
            columns,
            loss,
        }
    }

    /// What is done to the columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Steps of training.
    pub fn steps_done(&self) -> u64 {
        self.steps
    }

    /// The run.
    pub fn lock(&self) -> std::sync::MutexGuard<'_, LoadedRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(path: &Path) -> anyhow::Result<Self> {
        let run = LoadedRun::open(path)?;
        let facts = serde_json::to_value(&run.folder.facts.data)?;
        ensure!(
            facts.get("table").is_none_or(serde_json::Value::is_null),
            "{}: a run on a file with columns, which knows how to read such files; use `circulant predict`, or fit the \
             classifier on an array",
            path.display()
        );
        let image = run.folder.facts.data.image();
        let columns = columns_of(&run.folder.config.data.normalisation, image)?;
        Ok(Self::new(run, columns, None))
    }

    fn write(&self, path: &Path) -> anyhow::Result<()> {
        ensure!(
            path.extension()
                .is_some_and(|extension| extension == "json"),
            "{}: expected a name that ends in .json; the values are written beside it, with the extension .safetensors",
            path.display()
        );
        let run = self.lock();
        describe(&run.folder, run.steps).write(&run.network, path)?;
        Ok(())
    }

    fn rows<'a, T: Number>(&self, values: &'a [T]) -> PyResult<Rows<'a, T>> {
        let columns = self.columns.mean.len();
        if values.is_empty() || !values.len().is_multiple_of(columns) {
            return Err(value_error(format!(
                "x: expected rows of {columns} values, got {} values",
                values.len()
            )));
        }
        Ok(Rows { values, columns })
    }

    fn predict_rows<T: Number>(
        &self,
        network: &Bayesian<ImageClassifier>,
        config: &PredictiveConfig,
        rows: Rows<'_, T>,
        stop: &Stop,
    ) -> anyhow::Result<[Vec<f64>; 3]> {
        // A row is computed beside its neighbours, whose rounding it shares: in an order of their own, the order of the rows does
        // not matter.
        let (different, which) = different(rows);
        let mut found: [Vec<f32>; 3] = Default::default();
        for part in different.chunks(ROWS_AT_A_TIME) {
            if stop.is_asked() {
                bail!("asked to stop");
            }
            let predictions = config.predict(network, self.tensor(rows, part)?)?;
            found[0].extend(predictions.probabilities);
            found[1].extend(predictions.predictive_entropy);
            found[2].extend(predictions.expected_entropy);
        }
        let of_row = |values: &[f32]| -> Vec<f64> {
            which.iter().map(|&index| values[index].into()).collect()
        };
        let mut probabilities = Vec::with_capacity(which.len() * self.classes);
        for &index in &which {
            let row = &found[0][index * self.classes..][..self.classes];
            // Rounded to f32, rows sum to one only nearly.
            let sum: f64 = row.iter().copied().map(f64::from).sum();
            probabilities.extend(row.iter().map(|&p| f64::from(p) / sum));
        }
        Ok([probabilities, of_row(&found[1]), of_row(&found[2])])
    }

    fn tensor<T: Number>(&self, rows: Rows<'_, T>, chosen: &[usize]) -> anyhow::Result<Tensor<2>> {
        let shape = [chosen.len(), rows.columns];
        let values = self.columns.apply(rows, chosen.iter().copied());
        ensure!(
            values.iter().all(|x| x.is_finite()),
            "x: a value is too far from the training data to be computed with in float32"
        );
        let data = TensorData::new(values, shape);
        Ok(Tensor::from_data(data, &circulant::cpu()))
    }

    fn certify_rows<T: Number>(
        &self,
        network: &Bayesian<ImageClassifier>,
        rows: Rows<'_, T>,
    ) -> anyhow::Result<CertifiedRows> {
        let mean = network.valid().mean();
        let all: Vec<usize> = (0..rows.count()).collect();
        let inputs = self.tensor(rows, &all)?;
        let norms: Vec<f64> = {
            let squares = inputs.clone().powf_scalar(2.0).sum_dim(1).sqrt();
            let data = squares.into_data().convert::<f32>();
            data.iter::<f32>().map(f64::from).collect()
        };
        let certificates = CertificateConfig::new().certify(&mean, inputs, Target::Predicted)?;
        let smallest = self.columns.smallest();
        // A row is rounded to f32 after it is standardised; so is the perturbed one. Both errors are below 2^-23 of the size,
        // with a factor of two to spare.
        let unit = 2.0_f64.powi(-22);
        let radii = certificates.inputs.iter().zip(&norms).map(|(input, norm)| {
            let radius = input.best().get();
            let lost = unit * (2.0 * norm + radius);
            ((radius - lost) * smallest * (1.0 - 1e-12)).max(0.0)
        });
        Ok(CertifiedRows {
            classes: certificates
                .inputs
                .iter()
                .map(|input| input.predicted as i64)
                .collect(),
            margins: certificates
                .inputs
                .iter()
                .map(|input| input.margin)
                .collect(),
            radii: radii.collect(),
            lipschitz: (certificates.network.upper().get() / smallest) * (1.0 + 1e-12),
            norms: (certificates.network.layers().into_iter())
                .map(|layer| (layer.name().to_owned(), layer.norm().upper().get()))
                .collect(),
            rounding: certificates.rounding.get(),
            proven: certificates.is_proven(),
        })
    }
}

/// What is done to every column.
fn columns_of(
    normalisation: &Normalisation,
    [channels, height, width]: [usize; 3],
) -> anyhow::Result<Columns> {
    let plane = height * width;
    let each = |values: &[f32]| {
        values
            .iter()
            .flat_map(|&x| std::iter::repeat_n(x, plane))
            .collect()
    };
    Ok(match normalisation {
        Normalisation::Standard { mean, std } => {
            ensure!(
                mean.len() == channels && std.len() == channels,
                "expected mean and deviation of {channels} channels, found {} and {}",
                mean.len(),
                std.len()
            );
            Columns {
                mean: each(mean),
                std: each(std),
            }
        }
        _ => Columns::identity(channels * plane),
    })
}
