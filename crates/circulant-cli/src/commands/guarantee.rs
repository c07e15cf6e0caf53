//! Flags for sets of classes that hold the true one as often as asked.

use anyhow::ensure;
use circulant::conformal::SetMethod;
use clap::{Args, ValueEnum};

use crate::experiments::conformal::Guarantee;

/// Which classes belong to a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sets {
    /// The smallest on average: classes that are probable enough. A set may be empty.
    Threshold,
    /// The most probable classes until enough probability is together: larger where the input is hard.
    Aps,
    /// The same with a penalty of 0.01 for every class beyond the fifth.
    Raps,
}

/// Sets of classes, or intervals of numbers, with a promised coverage.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sets of classes, or intervals, with a promised coverage")]
pub struct Coverage {
    /// Add a set of classes to every input that holds the true class with at least this probability, calibrated on labelled data that the model has not
    /// learned from. Where the target is a number: intervals that hold it, mean -+ as many deviations as calibration asks.
    #[arg(long, value_name = "SHARE")]
    coverage: Option<f64>,
    /// The data to calibrate on, with `:train` or `:test` for one of its parts [default: what `train --validation` held out].
    #[arg(long, value_name = "NAME|PATH", requires = "coverage")]
    calibration: Option<String>,
    /// Which classes belong to a set [default: threshold].
    #[arg(long, value_enum, requires = "coverage")]
    sets: Option<Sets>,
    /// Keep the coverage although every input was moved by up to this distance (2-norm, in the units of the normalised input).
    #[arg(
        long,
        value_name = "EPS",
        requires = "coverage",
        allow_negative_numbers = true
    )]
    robust: Option<f64>,
}

impl Coverage {
    /// What was asked for where the target is a number.
    pub fn of_numbers(&self) -> anyhow::Result<Option<Guarantee>> {
        for (flag, given) in [
            ("--sets", self.sets.is_some()),
            ("--robust", self.robust.is_some()),
        ] {
            ensure!(
                !given,
                "{flag}: it is for classes, and this run predicts a number; leave it out"
            );
        }
        self.guarantee()
    }

    /// What was asked for, if anything was.
    pub fn guarantee(&self) -> anyhow::Result<Option<Guarantee>> {
        let Some(coverage) = self.coverage else {
            return Ok(None);
        };
        ensure!(
            coverage > 0.0 && coverage < 1.0,
            "--coverage: expected a share between 0 and 1, as 0.9, got {coverage}"
        );
        if let Some(radius) = self.robust {
            ensure!(
                radius >= 0.0 && radius.is_finite(),
                "--robust: expected 0 or a positive distance, got {radius}"
            );
        }
        Ok(Some(Guarantee {
            coverage,
            calibration: self.calibration.clone(),
            method: match self.sets.unwrap_or(Sets::Threshold) {
                Sets::Threshold => SetMethod::Threshold,
                Sets::Aps => SetMethod::Aps,
                Sets::Raps => SetMethod::RAPS,
            },
            robust: self.robust,
        }))
    }
}
