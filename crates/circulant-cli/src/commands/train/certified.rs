//! `circulant train --certified`: a network of Lipschitz constant one, trained for a radius.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Serialize;

use super::super::output::{json_line, print};
use super::Train;
use crate::experiments::certified::folder::CertifiedFolder;
use crate::experiments::certified::loaded::SPLIT_SEED;
use crate::experiments::certified::settings::{CertifiedConfig, CertifiedData, rounded};
use crate::experiments::certified::training::CertifiedImages;
use crate::experiments::certified::{ensure_one_process, train_all, write_temperatures};
use crate::experiments::config::DataConfig;
use crate::experiments::folder::DataFacts;
use crate::experiments::interrupt::Interrupt;
use crate::experiments::{Held, source};
use circulant_data::Split;

/// What `--json` prints.
#[derive(Serialize)]
struct CertifiedSummary {
    out: PathBuf,
    model: &'static str,
    parameters: usize,
    radius: f64,
    epochs: u64,
    seconds: f64,
    /// Of images that are held out.
    accuracy: f64,
    /// Of images that are held out, at the radius.
    certified: f64,
}

impl Train {
    /// Whether this run is, or resumes, one that is trained for a radius.
    pub(super) fn is_certified(&self) -> bool {
        let resumes = self.resume.as_deref().is_some_and(CertifiedFolder::is_at);
        self.certified.is_some() || resumes
    }

    /// Trains it.
    pub(super) fn train_certified(&self, interrupt: &Interrupt) -> anyhow::Result<()> {
        ensure_one_process()?;
        self.ensure_only_certified_flags()?;
        let (folder, held) = match &self.resume {
            Some(path) => self.reopen_certified(path)?,
            None => self.create_certified()?,
        };
        let validation = held.validation.as_ref().context("some are held out")?;
        let images = CertifiedImages {
            training: &held.training,
            validation,
        };
        let (network, bayesian) = train_all(&folder, images, interrupt)?;
        write_temperatures(&folder, network, bayesian.as_ref(), validation)?;
        let epochs = folder.epochs()?;
        let last = epochs.last().context("no epoch is whole")?;
        let summary = CertifiedSummary {
            out: folder.path().to_owned(),
            model: "orthogonal",
            parameters: folder.facts.parameters,
            radius: folder.config.certified.radius,
            epochs: last.epoch,
            seconds: last.seconds,
            accuracy: last.accuracy,
            certified: last.certified,
        };
        if self.json {
            return print(&json_line(&summary)?);
        }
        let path = folder.path().display();
        print(&format!(
            "{path}: {} parameters, {} epochs in {:.1} s\nheld out: {} inputs, accuracy {:.4}, certified at {} {:.4}\nnext: circulant \
             certify {path} --data {}\n",
            summary.parameters,
            summary.epochs,
            summary.seconds,
            validation.len(),
            summary.accuracy,
            rounded(summary.radius),
            summary.certified,
            folder.config.data.train
        ))
    }

    /// Refuses flags that such a run would not heed.
    fn ensure_only_certified_flags(&self) -> anyhow::Result<()> {
        /// The flags that are given.
        macro_rules! given {
            ($($flag:ident),*) => {
                [$((stringify!($flag), self.$flag.is_some())),*]
            };
        }
        let others = given!(
            config,
            model,
            channels,
            width,
            modes,
            block,
            depth,
            initial_scale,
            inference,
            rank,
            initial_deviation,
            slope,
            steps,
            final_rate,
            samples,
            kl_weight,
            patience,
            norm_limit,
            checkpoint_every
        );
        for (flag, is_given) in others {
            ensure!(
                !is_given,
                "--{}: networks that are trained for a radius have no such setting; leave it out (see `circulant train --help`, \
                 the flags of such networks)",
                flag.replace('_', "-")
            );
        }
        ensure!(
            !self.standardise,
            "--standardise: radii are in units of pixels between 0 and 1; leave it out"
        );
        Ok(())
    }

    fn create_certified(&self) -> anyhow::Result<(CertifiedFolder, Held)> {
        let radius = self
            .certified
            .context("it is there unless a run is resumed")?;
        ensure!(
            radius > 0.0 && radius.is_finite(),
            "--certified: expected a radius, a positive number, got {radius}"
        );
        let out = self
            .out
            .as_ref()
            .context("required unless --resume is there")?;
        let mut reading = DataConfig::default();
        self.reading.apply(&mut reading);
        let mut data = CertifiedData {
            train: self.data.clone().unwrap_or(reading.train.clone()),
            first: reading.first,
            size: reading.size,
            validation: self.validation.unwrap_or(0),
        };
        let set = source::images(&data.train, Split::Train, &reading)?;
        if self.validation.is_none() {
            data.validation = (set.len() / 10).max(1);
        }
        ensure!(
            data.validation > 0,
            "--validation: expected 1 or more, got 0; held-out images are certified after every epoch"
        );
        let held = Held::uniform(&set, data.validation, SPLIT_SEED)?;
        let facts = DataFacts::of(&held.training);
        let mut config = CertifiedConfig::chosen(data, radius, facts.shape);
        self.network.apply(&mut config);
        if let Some(batch) = self.batch {
            config.certified.batch = batch;
        }
        if let Some(rate) = self.learning_rate {
            config.certified.learning_rate = rate;
        }
        if let Some(seed) = self.seed {
            config.certified.seed = seed;
        }
        Ok((CertifiedFolder::create(out, config, facts)?, held))
    }

    fn reopen_certified(&self, path: &Path) -> anyhow::Result<(CertifiedFolder, Held)> {
        let changed = self.certified.is_some()
            || self.batch.is_some()
            || self.learning_rate.is_some()
            || self.seed.is_some()
            || self.validation.is_some()
            || self.network.given().is_some();
        if changed {
            bail!(
                "--resume: {} goes on with its own settings; leave the other flags out, or begin a new run with --out",
                path.display()
            );
        }
        let folder = CertifiedFolder::open(path)?;
        let data = &folder.config.data;
        let mut reading = data.reading();
        self.reading.apply(&mut reading);
        let set = source::images(&data.train, Split::Train, &reading)?;
        let held = Held::uniform(&set, data.validation, SPLIT_SEED)?;
        let facts = DataFacts::of(&held.training);
        let folder = CertifiedFolder::at(path, folder.config.clone(), facts)?;
        Ok((folder, held))
    }
}
