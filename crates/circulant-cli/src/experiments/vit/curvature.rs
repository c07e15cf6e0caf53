//! The curvature of the validation loss at a checkpoint.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};
use burn::tensor::{DType, Tensor, TensorData};
use circulant::curvature::{Curvature, CurvatureMatrix, EigenvalueConfig, Objective, Subspace};
use circulant::models::VisionTransformer;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::super::evaluation::labels_of;
use super::super::folder::pretty;
use super::super::progress::WorkProgress;
use super::super::version;
use super::folder::VitFolder;
use crate::files::write;
use circulant_data::ImageSet;

/// Images that go through the model at once: more of them need more memory.
const CHUNK: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// All of them.
    All,
    /// The projections to queries, keys, values and output.
    Attention,
}

impl Space {
    /// Both, as the paper lists them.
    pub const BOTH: [Self; 2] = [Self::All, Self::Attention];

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::All => "all parameters",
            Self::Attention => "attention only",
        }
    }

    fn subspace(self) -> Subspace {
        match self {
            Self::All => Subspace::all(),
            Self::Attention => Subspace::attention(),
        }
    }
}

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Args)]
pub struct CurvatureSettings {
    /// How many validation images, the first ones.
    #[arg(long, value_name = "N", default_value_t = Self::default().images)]
    pub images: usize,
    /// The residual at which the search stops, relative to the eigenvalue.
    #[arg(long, value_name = "X", default_value_t = Self::default().tolerance)]
    pub tolerance: f64,
    /// Stop after so many products with the matrix in any case.
    #[arg(long, value_name = "N", default_value_t = Self::default().max_products)]
    pub max_products: usize,
}

impl Default for CurvatureSettings {
    fn default() -> Self {
        Self {
            images: 128,
            tolerance: 1e-2,
            max_products: 100,
        }
    }
}

/// A dominant eigenvalue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Eigenvalue {
    pub value: f64,
    /// An eigenvalue is within this distance of it.
    pub residual: f64,
    /// Whether that is within the tolerance.
    pub converged: bool,
    /// Products with the matrix.
    pub products: usize,
}

/// The curvature over one subspace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpaceCurvature {
    pub subspace: Space,
    pub dimension: usize,
    /// The loss there.
    pub loss: f64,
    /// The eigenvalue of largest magnitude of the Hessian.
    pub hessian: Eigenvalue,
    /// The largest eigenvalue of the Gauss-Newton matrix.
    pub gauss_newton: Eigenvalue,
    pub seconds: f64,
}

/// Measures over one subspace. The images should be held-out ones.
pub fn measure(
    model: &VisionTransformer,
    set: &ImageSet,
    folder: &VitFolder,
    space: Space,
    settings: &CurvatureSettings,
    title: &str,
) -> anyhow::Result<SpaceCurvature> {
    ensure!(
        settings.images > 0 && settings.images <= set.len(),
        "--images: expected 1 to {}, the number of validation images, got {}",
        set.len(),
        settings.images
    );
    let start = Instant::now();
    let set = set.first(settings.images);
    let labels = labels_of(&set)?;
    let values: Vec<f64> = set
        .values(&folder.config.data.normalisation)?
        .into_iter()
        .map(f64::from)
        .collect();
    let device = circulant::cpu().autodiff();
    let data = TensorData::new(values, set.shape());
    let images = Tensor::<4>::from_data(data, (&device, DType::F64));
    let objective = Objective::classifier(images, labels);
    let curvature = Curvature::new(
        model.clone(),
        objective.with_chunk(CHUNK),
        &space.subspace(),
    )?;
    let config = EigenvalueConfig {
        tolerance: settings.tolerance,
        max_products: settings.max_products,
        ..EigenvalueConfig::default()
    };
    let eigenvalue = |operator, name| -> anyhow::Result<Eigenvalue> {
        let title = format!("{title}, {}, {name}", space.title());
        let mut progress = WorkProgress::new(title, settings.max_products as u64);
        let found = curvature.dominant_eigenvalue_with_progress(operator, &config, |products| {
            progress.at(products as u64, || "products".to_owned());
        })?;
        progress.finish(format!(
            "{:.4} +- {:.4}, {} products",
            found.value, found.residual, found.products
        ));
        Ok(Eigenvalue {
            value: found.value,
            residual: found.residual,
            converged: found.converged,
            products: found.products,
        })
    };
    Ok(SpaceCurvature {
        subspace: space,
        dimension: curvature.dimension(),
        loss: curvature.loss()?,
        hessian: eigenvalue(CurvatureMatrix::Hessian, "Hessian")?,
        gauss_newton: eigenvalue(CurvatureMatrix::GaussNewton, "Gauss-Newton")?,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// `curvature.json`: what was measured at the best checkpoint, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Steps behind the checkpoint.
    pub steps: u64,
    /// How closely.
    pub settings: CurvatureSettings,
    /// One entry per subspace.
    pub spaces: Vec<SpaceCurvature>,
}

/// Measures over both subspaces at the best checkpoint of a folder, and keeps the result there; what was measured before in the
/// same way is not repeated.
pub fn measure_best(
    folder: &VitFolder,
    set: &ImageSet,
    settings: &CurvatureSettings,
    title: &str,
) -> anyhow::Result<Measured> {
    let (model, steps) = folder.model(&folder.best())?;
    let path = folder.path().join("curvature.json");
    let known = read(&path)?.filter(|known| known.steps == steps && known.settings == *settings);
    let mut measured = known.unwrap_or(Measured {
        steps,
        settings: *settings,
        spaces: Vec::new(),
    });
    for space in Space::BOTH {
        if measured.spaces.iter().all(|found| found.subspace != space) {
            let found = measure(&model, set, folder, space, settings, title)?;
            measured.spaces.push(found);
            write(&path, pretty(&measured)?).context("the curvature cannot be kept")?;
        }
    }
    Ok(measured)
}

/// A file that cannot be read is measured anew, one of a newer program left alone.
fn read(path: &Path) -> anyhow::Result<Option<Measured>> {
    let Ok(text) = fs::read_to_string(path) else {
        return Ok(None);
    };
    version::of_json(&text, path)?;
    Ok(serde_json::from_str(&text).ok())
}
