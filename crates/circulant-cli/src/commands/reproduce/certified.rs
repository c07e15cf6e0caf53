//! `circulant reproduce certified`.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;

use super::super::certified_flags::CertifiedFlags;
use super::super::data::display::Display;
use super::super::flags::Fetching;
use super::super::reading::parse_size;
use super::finish;
use crate::experiments::certified::evaluation::Unfamiliar;
use crate::experiments::certified::settings::{CertifiedConfig, CertifiedData, published_radii};
use crate::experiments::certified::{CertifiedPlan, Judging, ensure_one_process, plain};
use crate::experiments::config::{DataConfig, Draw};
use crate::experiments::interrupt::Interrupt;
use crate::experiments::source;
use crate::experiments::vit::sets::{VitRequest, VitSets};
use crate::ranks::{folder, say};
use circulant_data::Split;
use circulant_data::fetch::{FetchOptions, fetch};
use circulant_data::known::KNOWN;

/// Networks of Lipschitz constant one, trained for a certified radius.
///
/// Trains orthogonal convolutions with MaxMin for every radius and seed, infers a distribution over each of them, evaluates both on the
/// test set (accuracy, certified accuracy, a strong attack, calibration, out-of-distribution data), and writes report.html,
/// results.json, all figures and all run folders below --out, with published results beside. Settings that no flag names are
/// those that held-out images chose. What is already there is not repeated, so the same command resumes after Ctrl-C.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant reproduce certified
  circulant reproduce certified --radii 0.3 --widths 8,8 --seeds 0 --epochs 4 --validate --out runs/quick
  circulant reproduce certified --data cifar10 --seeds 0 --out runs/certified-cifar10
  circulant reproduce certified --data pictures/ --size 32x32 --radii 0.5 --flip --out runs/pictures")]
pub(super) struct Certified {
    /// mnist, cifar10, another name of `data list`, or a path with a training and a test part.
    #[arg(long, default_value = "mnist", value_name = "NAME|PATH")]
    data: String,
    /// The folder for everything.
    #[arg(long, value_name = "FOLDER", default_value = "runs/certified")]
    out: PathBuf,
    /// Radii to train for, in the 2-norm of an image with pixels between 0 and 1 [default: 0.3 and 1.58 for MNIST, 36/255 for CIFAR-10,
    /// else 0.3].
    #[arg(
        long,
        value_name = "X,...",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    radii: Vec<f64>,
    /// Seeds, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "0,1,2")]
    seeds: Vec<u64>,
    /// Images that are attacked, every class with its share; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    attack_images: usize,
    /// Gradient steps of the attack.
    #[arg(long, value_name = "N", default_value_t = 100)]
    attack_steps: usize,
    /// Starts of the attack.
    #[arg(long, value_name = "N", default_value_t = 5)]
    attack_restarts: usize,
    /// Networks drawn from the distribution.
    #[arg(long, value_name = "N", default_value_t = 16)]
    samples: usize,
    /// Out-of-distribution data, separated by commas [default: fashion-mnist for mnist].
    #[arg(long, value_name = "NAME|PATH,...", value_delimiter = ',')]
    ood: Vec<String>,
    /// Images held out of training [default: a tenth].
    #[arg(long, value_name = "N")]
    validation: Option<usize>,
    /// Judge by the held-out images and leave the test set alone: for choosing settings.
    #[arg(long)]
    validate: bool,
    /// Scale the images of a folder to HEIGHTxWIDTH.
    #[arg(long, value_name = "HxW", value_parser = parse_size)]
    size: Option<[usize; 2]>,
    /// Take only N images of every part, every class with its share, for a quick look.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    #[command(flatten)]
    fetching: Fetching,
    /// Print results.json instead of the table.
    #[arg(long)]
    json: bool,
    // Last: its heading holds for all flags that follow.
    #[command(flatten)]
    network: CertifiedFlags,
}

/// Unless a flag says otherwise.
const BAYESIAN_EPOCHS: u64 = 1;

impl Certified {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        ensure_one_process()?;
        for (flag, number) in [
            ("--attack-steps", self.attack_steps),
            ("--attack-restarts", self.attack_restarts),
            ("--samples", self.samples),
        ] {
            ensure!(number > 0, "{flag}: expected 1 or more, got 0");
        }
        for radius in &self.radii {
            ensure!(
                *radius > 0.0 && radius.is_finite(),
                "--radii: expected positive numbers, got {radius}"
            );
        }
        let interrupt = Interrupt::listen()?;
        let options = self.fetching.options()?;
        let request = VitRequest {
            place: self.data.clone(),
            first: self.first,
            draw: Draw::default(),
            size: self.size,
            validation: self.validation,
        };
        let sets = VitSets::load(&request, &options, &Display::new())?;
        let plan = CertifiedPlan {
            configs: self.configs(&sets)?,
            unfamiliar: self.unfamiliar(&sets, &options)?,
            judging: Judging {
                attack_images: self.attack_images,
                attack_steps: self.attack_steps,
                attack_restarts: self.attack_restarts,
                samples: self.samples,
            },
            validate: self.validate,
            sets,
            out: folder(&self.out)?,
        };
        let experiment = plan.run(&interrupt)?;
        say!("writing the report");
        let results = experiment.write()?;
        finish(self.json, &results, || plain(&results), &self.out)
    }

    fn configs(&self, sets: &VitSets) -> anyhow::Result<Vec<CertifiedConfig>> {
        let radii = match &self.radii[..] {
            [] => published_radii(&self.data),
            radii => radii.to_vec(),
        };
        let shape = sets.images.training.shape();
        let mut configs = Vec::new();
        for radius in radii {
            for &seed in &self.seeds {
                let data = CertifiedData {
                    train: self.data.clone(),
                    first: self.first,
                    size: self.size,
                    validation: sets.images.validation.len(),
                    centre: 0.0,
                };
                let mut config = CertifiedConfig::chosen(data, radius, shape);
                config.certified.bayesian_epochs = BAYESIAN_EPOCHS;
                self.network.apply(&mut config);
                config.certified.seed = seed;
                config.check()?;
                ensure!(
                    !configs.contains(&config),
                    "--radii or --seeds: {} is there twice",
                    config.name()
                );
                configs.push(config);
            }
        }
        Ok(configs)
    }

    /// Data that a distribution should not know.
    fn unfamiliar(
        &self,
        sets: &VitSets,
        options: &FetchOptions,
    ) -> anyhow::Result<Vec<Unfamiliar>> {
        let names = match (&self.ood[..], self.data.as_str()) {
            ([], "mnist") => vec!["fashion-mnist".to_owned()],
            (names, _) => names.to_vec(),
        };
        let [_, expected @ ..] = sets.test.shape();
        let read = |name: String| -> anyhow::Result<Unfamiliar> {
            if let Some(known) = KNOWN.iter().find(|known| known.name == name) {
                fetch(known, options, &Display::new())
                    .with_context(|| format!("{name} cannot be had; --ood takes a path too"))?;
            }
            let reading = DataConfig {
                first: self.first,
                fits: Some(expected),
                labels_optional: true,
                ..DataConfig::default()
            };
            let set = source::images(&name, Split::Test, &reading)?;
            let [_, found @ ..] = set.shape();
            ensure!(
                found == expected,
                "--ood: {name} has images of {found:?} (channels, height, width), expected {expected:?}; take others"
            );
            Ok(Unfamiliar { name, set })
        };
        names.into_iter().map(read).collect()
    }
}
