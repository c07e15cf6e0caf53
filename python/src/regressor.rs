//! A trained regression: what the program calls a run, in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail, ensure};
use burn::module::Module;
use circulant::baselines::FeatureDensity;
use circulant::bayes::{Bayesian, PredictiveConfig};
use circulant::geometry::{Lipschitz, TargetBoundsConfig};
use circulant::models::TargetNetwork;
use circulant::task::TargetEnsemble;
use circulant_cli::bindings::{Inspected, LoadedRegression};
use circulant_data::TableTask;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::{Number, array, input, of_number_type, optional, optional_slice, slice};
use crate::classifier::{ROWS_AT_A_TIME, norms};
use crate::drawn::LastDrawn;
use crate::errors::of_anyhow;
use crate::familiar;
use crate::fit::{Targets, regressor};
use crate::options::{FitOptions, finish};
use crate::table::{Columns, Rows, different};
use crate::threads::{Stop, run_holding, run_long, run_long_or_short};
use crate::training::{Progress, tape};

/// A trained regression.
#[pyclass(frozen, module = "circulant._engine")]
pub struct Regressor {
    run: Mutex<LoadedRegression>,
    /// As the program writes it.
    checkpoint: Vec<u8>,
    columns: Columns,
    line: String,
    loss: Option<f64>,
    drawn: LastDrawn<TargetEnsemble<2>>,
    /// Of the hidden features of training.
    density: Option<FeatureDensity>,
}

#[pymethods]
impl Regressor {
    /// Trains on rows `[rows, columns]` with a number each; returns the regression and, if training was stopped, why.
    /// `progress(step, steps, loss)` is called now and then.
    #[staticmethod]
    #[pyo3(signature = (options, x, targets, weights, counts, begin))]
    fn fit<'py>(
        py: Python<'py>,
        options: FitOptions<'py>,
        x: &Bound<'py, PyAny>,
        targets: &Bound<'py, PyAny>,
        weights: Option<&Bound<'py, PyAny>>,
        counts: bool,
        begin: Option<&Bound<'py, Self>>,
    ) -> PyResult<(Self, Option<Bound<'py, PyAny>>)> {
        let targets = input::<f64>("targets", targets)?;
        let targets = Targets {
            values: slice(&targets)?,
            counts,
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
            let work = |stop: &Stop| regressor(&task, &targets, begin, stop, &told);
            run_holding(py, options.threads, |_| options.tell(&told), tape, work)
        })?;
        finish(py, done)
    }

    /// Opens the folder of a run.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Self::open(&path)).map_err(of_anyhow)
    }

    /// Writes the run into a new folder.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.write(&path)).map_err(of_anyhow)
    }

    /// The bytes of its files.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let files = || -> anyhow::Result<Vec<Vec<u8>>> {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("run");
            self.write(&path)?;
            // There may be no density.
            let read = |name: &&str| match path.join(name) {
                file if file.exists() => Ok(fs::read(file)?),
                _ => Ok(Vec::new()),
            };
            FILES.iter().map(read).collect()
        };
        let files = py.detach(files).map_err(of_anyhow)?;
        Ok(files.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// From the bytes of its files.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, files: [Vec<u8>; FILES.len()]) -> PyResult<Self> {
        let open = || -> anyhow::Result<_> {
            let folder = tempfile::tempdir()?;
            for (name, bytes) in FILES.iter().zip(files) {
                if bytes.is_empty() {
                    continue;
                }
                fs::write(folder.path().join(name), bytes)?;
            }
            Self::open(folder.path())
        };
        py.detach(open).map_err(of_anyhow)
    }

    /// Of every row mean, deviation, its aleatoric and its epistemic part, and quantiles `[rows, shares]`, from so many posterior samples.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        shares: Vec<f64>,
        samples: usize,
        seed: u64,
        threads: usize,
    ) -> PyResult<[Bound<'py, PyArray1<f64>>; 5]> {
        let config = self.predictive(samples, seed);
        let (found, failed) = of_number_type!(x, T => {
            let x = input::<T>("x", x)?;
            let rows = self.columns.rows(slice(&x)?)?;
            let work = |stop: &Stop| self.predict_rows(&config, rows, &shares, stop);
            run_long_or_short(py, threads, self.drawn.products(&config, rows.count()), work)
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let found = found.map_err(of_anyhow)?;
        Ok(found.map(|values| array(py, values)))
    }

    /// Radii around rows inside which the mean prediction, averaged over posterior samples, moves by at most the row's tolerance; unless
    /// given, half of its own 90 % interval.
    fn certify<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        tolerances: Option<&Bound<'py, PyAny>>,
        samples: usize,
        seed: u64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let tolerances = optional::<f64>("tolerances", tolerances)?;
        let tolerances = optional_slice(&tolerances)?;
        let network = self.lock().network.clone();
        let config = self.predictive(samples, seed);
        let (certified, failed) = of_number_type!(x, T => {
            let x = input::<T>("x", x)?;
            let rows = self.columns.rows(slice(&x)?)?;
            let work = |stop: &Stop| self.certify_rows(&network, &config, rows, tolerances, stop);
            run_long(py, threads, |_| Ok(()), work)
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let certified = certified.map_err(of_anyhow)?;
        let dict = PyDict::new(py);
        dict.set_item("mean", array(py, certified.means))?;
        dict.set_item("tolerance", array(py, certified.tolerances))?;
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
                familiar::log_densities(density, &network, |model| &model.layers, &self.columns, rows)
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

    /// The names of the columns.
    #[getter]
    fn columns_of_table(&self) -> Vec<String> {
        let run = self.lock();
        let columns = run.schema.columns.iter();
        columns.map(|rule| rule.name.clone()).collect()
    }

    /// Whether the targets are counts.
    #[getter]
    fn counts(&self) -> bool {
        matches!(self.lock().schema.task, TableTask::Counts { .. })
    }

    /// Steps of training.
    #[getter]
    fn steps(&self) -> u64 {
        self.lock().steps
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

/// Of a run's folder.
const FILES: [&str; 4] = ["config.toml", "run.json", "checkpoint.safetensors", DENSITY];

/// Of the hidden features of training.
const DENSITY: &str = "density.safetensors";

/// The probabilities below the ends of the 90 % interval.
const ENDS: [f64; 2] = [0.05, 0.95];

struct CertifiedTargets {
    means: Vec<f64>,
    tolerances: Vec<f64>,
    radii: Vec<f64>,
    lipschitz: f64,
    norms: Vec<(String, f64)>,
    rounding: f64,
    proven: bool,
}

impl Regressor {
    /// Of a run, with its checkpoint and with what is done to its columns.
    pub fn new(
        run: LoadedRegression,
        checkpoint: Vec<u8>,
        columns: Columns,
        line: String,
        loss: Option<f64>,
    ) -> Self {
        Self {
            drawn: LastDrawn::new(run.folder.facts.weights + run.folder.facts.biases),
            run: Mutex::new(run),
            checkpoint,
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

    /// What the model is.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The run.
    pub fn lock(&self) -> MutexGuard<'_, LoadedRegression> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(path: &Path) -> anyhow::Result<Self> {
        let run = LoadedRegression::open(path)?.with_context(|| {
            format!(
                "{} is no regression: expected the folder of one, as `CirculantRegressor.save` and `circulant train` make it; of classes, \
                 use CirculantClassifier.load",
                path.display()
            )
        })?;
        let columns = Columns::of_schema(&run.schema)?;
        let checkpoint = fs::read(run.folder.checkpoint())?;
        let density = familiar::read(&path.join(DENSITY))?;
        Ok(Self::new(run, checkpoint, columns, String::new(), None).with_density(density))
    }

    fn write(&self, path: &Path) -> anyhow::Result<()> {
        let folder = self.lock().folder.clone();
        folder.write_to(path, &self.checkpoint)?;
        familiar::write(&path.join(DENSITY), self.density.as_ref())
    }

    fn predictive(&self, samples: usize, seed: u64) -> PredictiveConfig {
        // Draws from a point are all the same.
        let samples = if self.lock().is_bayesian() {
            samples
        } else {
            1
        };
        PredictiveConfig::new()
            .with_samples(samples)
            .with_seed(seed)
    }

    fn predict_rows<T: Number>(
        &self,
        config: &PredictiveConfig,
        rows: Rows<'_, T>,
        shares: &[f64],
        stop: &Stop,
    ) -> anyhow::Result<[Vec<f64>; 5]> {
        // As of a classifier, the order of the rows does not matter.
        let (different, which) = different(rows);
        let task = self.lock().schema.task.clone();
        let draw = || config.draw_targets(&self.lock().network);
        let (found, quantiles) = self.drawn.with(config, draw, |drawn| {
            let mut found: [Vec<f64>; 4] = Default::default();
            let mut quantiles: Vec<Vec<f64>> = vec![Vec::new(); shares.len()];
            for part in different.chunks(ROWS_AT_A_TIME) {
                if stop.is_asked() {
                    bail!("asked to stop");
                }
                let mut predictions = drawn.predict_targets(self.columns.tensor(rows, part)?)?;
                if let TableTask::Regression { mean, deviation } = task {
                    predictions = predictions.rescaled(mean, deviation)?;
                }
                found[0].extend(predictions.mean());
                found[1].extend(predictions.deviation());
                found[2].extend(predictions.aleatoric_deviation());
                found[3].extend(predictions.epistemic_deviation());
                for (quantile, &share) in quantiles.iter_mut().zip(shares) {
                    quantile.extend(predictions.quantile(share)?);
                }
            }
            Ok((found, quantiles))
        })?;
        let of_row = |values: Vec<f64>| which.iter().map(|&index| values[index]).collect();
        let [mean, deviation, aleatoric, epistemic] = found.map(of_row);
        let of_rows = which.iter();
        let quantiles = of_rows.flat_map(|&index| quantiles.iter().map(move |q| q[index]));
        Ok([mean, deviation, aleatoric, epistemic, quantiles.collect()])
    }

    fn certify_rows<T: Number>(
        &self,
        network: &Bayesian<TargetNetwork>,
        config: &PredictiveConfig,
        rows: Rows<'_, T>,
        tolerances: Option<&[f64]>,
        stop: &Stop,
    ) -> anyhow::Result<CertifiedTargets> {
        let TableTask::Regression { deviation, .. } = self.lock().schema.task else {
            bail!(
                "counts cannot be certified: their rate is an exponential, which has no global Lipschitz constant; use \
                 task='regression'"
            );
        };
        let [means, _, _, _, ends] = self.predict_rows(config, rows, &ENDS, stop)?;
        let tolerances = match tolerances {
            Some(tolerances) => tolerances.to_vec(),
            None => ends
                .chunks(2)
                .map(|ends| (ends[1] - ends[0]) / 2.0)
                .collect(),
        };
        ensure!(
            tolerances.len() == rows.count()
                && tolerances.iter().all(|&t| t > 0.0 && t.is_finite()),
            "tolerance: expected positive numbers, one or as many as rows"
        );
        let all: Vec<usize> = (0..rows.count()).collect();
        let inputs = self.columns.tensor(rows, &all)?;
        let bounds = TargetBoundsConfig::new()
            .with_samples(config.samples)
            .with_seed(config.seed)
            .bound(network, inputs.clone())?;
        let radii = tolerances
            .iter()
            .enumerate()
            .map(|(row, tolerance)| bounds.radius(row, tolerance / deviation).get());
        Ok(CertifiedTargets {
            radii: self.columns.radii(inputs, radii),
            means,
            lipschitz: self.columns.lipschitz(bounds.lipschitz.get() * deviation),
            norms: norms(&network.valid().mean().network_bound()?),
            rounding: bounds.rounding.get() * deviation,
            proven: bounds.is_proven,
            tolerances,
        })
    }
}
