//! A trained classifier: what the program calls a run, in memory.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{bail, ensure};
use burn::module::Module;
use circulant::baselines::FeatureDensity;
use circulant::bayes::{Bayesian, PredictiveConfig};
use circulant::geometry::{
    CertificateConfig, Lipschitz, NetworkBound, PredictiveBoundsConfig, Target,
};
use circulant::models::ImageClassifier;
use circulant::task::Ensemble;
use circulant_cli::bindings::{Inspected, LoadedRun, TrainedRun, describe};
use circulant_data::Normalisation;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::{Number, array, input, integers, of_number_type, slice};
use crate::drawn::LastDrawn;
use crate::errors::of_anyhow;
use crate::familiar;
use crate::fit::{Classes, classifier};
use crate::options::{FitOptions, finish};
use crate::table::{Columns, Rows, different};
use crate::threads::{Stop, run_holding, run_long, run_long_or_short};
use crate::training::{Progress, tape};

/// Rows that are predicted between two looks at Ctrl-C.
pub const ROWS_AT_A_TIME: usize = 2048;

/// A trained classifier.
#[pyclass(frozen, module = "circulant._engine")]
pub struct Classifier {
    run: Mutex<LoadedRun>,
    columns: Columns,
    classes: usize,
    steps: u64,
    line: String,
    loss: Option<f64>,
    drawn: LastDrawn<Ensemble<2>>,
    /// Of the hidden features of training.
    density: Option<FeatureDensity>,
}

#[pymethods]
impl Classifier {
    /// Trains on rows `[rows, columns]` with the classes `0, 1, ...`; returns the classifier and, if training was stopped, why.
    /// `progress(step, steps, loss)` is called now and then.
    #[staticmethod]
    #[pyo3(signature = (options, x, labels, weights, class_names, image, begin))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them one by one")]
    fn fit<'py>(
        py: Python<'py>,
        options: FitOptions<'py>,
        x: &Bound<'py, PyAny>,
        labels: &Bound<'py, PyAny>,
        weights: Option<&Bound<'py, PyAny>>,
        class_names: Vec<String>,
        image: Option<[usize; 3]>,
        begin: Option<&Bound<'py, Self>>,
    ) -> PyResult<(Self, Option<Bound<'py, PyAny>>)> {
        let labels = integers("labels", labels)?;
        let classes = Classes {
            labels: slice(&labels)?,
            names: class_names,
            image,
        };
        let weights = weights
            .map(|weights| input::<f64>("weights", weights))
            .transpose()?;
        let told = Progress::default();
        let done = of_number_type!(x, T => {
            let x = input::<T>("x", x)?;
            let weights = weights.as_ref().map(slice).transpose()?;
            let task = options.task(slice(&x)?, weights);
            let begin = begin.map(|begin| begin.get());
            let work = |stop: &Stop| classifier(&task, &classes, begin, stop, &told);
            run_holding(py, options.threads, |_| options.tell(&told), tape, work)
        })?;
        finish(py, done)
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

    /// The bytes of the files; the last are empty where there is no density.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyBytes>; 3]> {
        let files = || -> anyhow::Result<_> {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("classifier.json");
            self.write(&path)?;
            let values = std::fs::read(path.with_extension("safetensors"))?;
            Ok([
                std::fs::read(&path)?,
                values,
                familiar::to_bytes(self.density.as_ref())?,
            ])
        };
        let files = py.detach(files).map_err(of_anyhow)?;
        Ok(files.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// From the bytes of the files.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, files: [Vec<u8>; 3]) -> PyResult<Self> {
        let open = || -> anyhow::Result<_> {
            let [description, values, density] = files;
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("classifier.json");
            std::fs::write(path.with_extension("safetensors"), values)?;
            std::fs::write(&path, description)?;
            let density = familiar::from_bytes(&density)?;
            Ok(Self::open(&path)?.with_density(density))
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
            .with_samples(self.samples(samples))
            .with_seed(seed);
        let (predictions, failed) = of_number_type!(x, T => {
            let x = input::<T>("x", x)?;
            let rows = self.columns.rows(slice(&x)?)?;
            let products = self.drawn.products(&config, rows.count());
            run_long_or_short(py, threads, products, |stop| self.predict_rows(&config, rows, stop))
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let predictions = predictions.map_err(of_anyhow)?;
        Ok(predictions.map(|values| array(py, values)))
    }

    /// Radii around rows inside which a decision cannot change, and what they rest on: that of the average over so many posterior samples
    /// with this seed, or that of the posterior's mean.
    #[pyo3(signature = (x, average, threads))]
    fn certify<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        average: Option<(usize, u64)>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let network = self.lock().network.clone();
        let (certified, failed) = of_number_type!(x, T => {
            let x = input::<T>("x", x)?;
            let rows = self.columns.rows(slice(&x)?)?;
            let work = |_: &Stop| match average {
                Some((samples, seed)) => self.certify_average(&network, samples, seed, rows),
                None => self.certify_mean(&network, rows),
            };
            run_long(py, threads, |_| Ok(()), work)
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

    /// The logarithm of the density of every row's hidden features among those of training; None where no density was kept.
    fn log_densities<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let network = self.lock().network.clone();
        let density = self.density.as_ref();
        let (found, failed) = of_number_type!(x, T => {
            let x = input::<T>("x", x)?;
            let rows = self.columns.rows(slice(&x)?)?;
            let work = |_: &Stop| {
                familiar::log_densities(density, &network, |model| model, &self.columns, rows)
            };
            run_long(py, threads, |_| Ok(()), work)
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        Ok(found.map_err(of_anyhow)?.map(|values| array(py, values)))
    }

    /// Writes the page with norms, spectra and filters beside the prior.
    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let write = || {
            let run = self.lock();
            Inspected::new(&run.folder, &run.network, run.steps)?.write(&run.folder, &path)
        };
        py.detach(write).map_err(of_anyhow)
    }

    /// The figures of the page: names and SVG texts.
    fn figures(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let draw = || -> anyhow::Result<_> {
            let run = self.lock();
            Ok(Inspected::new(&run.folder, &run.network, run.steps)?.figures(&run.folder))
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

    /// What the model is, and why; empty when unknown.
    #[getter]
    fn model(&self) -> &str {
        &self.line
    }

    /// The seed of training.
    #[getter]
    fn seed(&self) -> u64 {
        self.lock().folder.config.training.seed
    }

    /// The names of the columns; empty when unknown.
    #[getter]
    fn columns_of_table(&self) -> Vec<String> {
        let run = self.lock();
        let schema = run.folder.facts.data.table.as_ref();
        let columns = schema.into_iter().flat_map(|schema| &schema.columns);
        columns.map(|rule| rule.name.clone()).collect()
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
    pub fn new(run: LoadedRun, columns: Columns, line: String, loss: Option<f64>) -> Self {
        Self {
            classes: run.folder.facts.data.classes,
            steps: run.steps,
            drawn: LastDrawn::new(run.folder.facts.weights + run.folder.facts.biases),
            run: Mutex::new(run),
            columns,
            line,
            loss,
            density: None,
        }
    }

    /// With the density of the hidden features of training.
    pub fn with_density(self, density: Option<FeatureDensity>) -> Self {
        Self { density, ..self }
    }

    /// What is done to the columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Steps of training.
    pub fn steps_done(&self) -> u64 {
        self.steps
    }

    /// What the model is.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The run.
    pub fn lock(&self) -> MutexGuard<'_, LoadedRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws from a point are all the same.
    fn samples(&self, samples: usize) -> usize {
        match self.lock().is_bayesian() {
            true => samples,
            false => 1,
        }
    }

    fn open(path: &Path) -> anyhow::Result<Self> {
        let run = LoadedRun::open(path)?;
        let data = &run.folder.facts.data;
        let columns = match &data.table {
            Some(schema) => Columns::of_schema(schema)?,
            None => columns_of(&run.folder.config.data.normalisation, data.image())?,
        };
        let density = familiar::read(&density_of(path))?;
        Ok(Self::new(run, columns, String::new(), None).with_density(density))
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
        familiar::write(&density_of(path), self.density.as_ref())
    }

    fn predict_rows<T: Number>(
        &self,
        config: &PredictiveConfig,
        rows: Rows<'_, T>,
        stop: &Stop,
    ) -> anyhow::Result<[Vec<f64>; 3]> {
        // A row is computed beside its neighbours, whose rounding it shares: in an order of their own, the order of the rows does
        // not matter.
        let (different, which) = different(rows);
        let draw = || config.draw(&self.lock().network);
        let found = self.drawn.with(config, draw, |drawn| {
            let mut found: [Vec<f32>; 3] = Default::default();
            for part in different.chunks(ROWS_AT_A_TIME) {
                if stop.is_asked() {
                    bail!("asked to stop");
                }
                let predictions = drawn.predict(self.columns.tensor(rows, part)?)?;
                found[0].extend(predictions.probabilities);
                found[1].extend(predictions.predictive_entropy);
                found[2].extend(predictions.expected_entropy);
            }
            Ok(found)
        })?;
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

    fn certify_average<T: Number>(
        &self,
        network: &Bayesian<ImageClassifier>,
        samples: usize,
        seed: u64,
        rows: Rows<'_, T>,
    ) -> anyhow::Result<CertifiedRows> {
        let all: Vec<usize> = (0..rows.count()).collect();
        let inputs = self.columns.tensor(rows, &all)?;
        let bounds = PredictiveBoundsConfig::new()
            .with_samples(self.samples(samples))
            .with_seed(seed)
            .bound(network)?;
        let certificates = bounds.certify(inputs.clone(), Target::Predicted)?;
        let of_inputs = certificates.inputs.iter();
        let radii = of_inputs.clone().map(|input| input.per_sample.get());
        Ok(CertifiedRows {
            classes: of_inputs
                .clone()
                .map(|input| input.predicted as i64)
                .collect(),
            margins: of_inputs.map(|input| input.difference).collect(),
            radii: self.columns.radii(inputs, radii),
            lipschitz: self.columns.lipschitz(certificates.lipschitz.get()),
            norms: norms(&network.valid().mean().network_bound()?),
            rounding: certificates.rounding.get(),
            proven: certificates.is_proven,
        })
    }

    fn certify_mean<T: Number>(
        &self,
        network: &Bayesian<ImageClassifier>,
        rows: Rows<'_, T>,
    ) -> anyhow::Result<CertifiedRows> {
        let mean = network.valid().mean();
        let all: Vec<usize> = (0..rows.count()).collect();
        let inputs = self.columns.tensor(rows, &all)?;
        let certificates =
            CertificateConfig::new().certify(&mean, inputs.clone(), Target::Predicted)?;
        let best = certificates.inputs.iter().map(|input| input.best().get());
        let radii = self.columns.radii(inputs, best);
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
            radii,
            lipschitz: self.columns.lipschitz(certificates.network.upper().get()),
            norms: norms(&certificates.network),
            rounding: certificates.rounding.get(),
            proven: certificates.is_proven(),
        })
    }
}

/// Upper bounds of the operator norms, with the names of the layers.
pub fn norms(network: &NetworkBound) -> Vec<(String, f64)> {
    let layers = network.layers().into_iter();
    layers
        .map(|layer| (layer.name().to_owned(), layer.norm().upper().get()))
        .collect()
}

/// Where the density of a run, or of a saved classifier, is.
fn density_of(path: &Path) -> PathBuf {
    match path.is_dir() {
        true => path.join("density.safetensors"),
        false => path.with_extension("density.safetensors"),
    }
}

/// What is done to every column.
fn columns_of(
    normalisation: &Normalisation,
    [channels, height, width]: [usize; 3],
) -> anyhow::Result<Columns> {
    let plane = height * width;
    Ok(match normalisation {
        Normalisation::Standard { mean, std } => {
            ensure!(
                mean.len() == channels && std.len() == channels,
                "expected mean and deviation of {channels} channels, found {} and {}",
                mean.len(),
                std.len()
            );
            let double =
                |values: &[f32]| -> Vec<f64> { values.iter().map(|&x| x.into()).collect() };
            Columns::of_groups(&double(mean), &double(std), plane)
        }
        _ => Columns::identity(channels * plane),
    })
}
