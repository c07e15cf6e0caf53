//! `circulant evaluate` where the target is a number or a count.

use anyhow::ensure;
use circulant_data::Split;

use super::Evaluate;
use crate::commands::output::{json_line, print};
use crate::experiments::regression::{LoadedRegression, TargetMetrics};

impl Evaluate {
    pub(super) fn targets(&self, run: &LoadedRegression) -> anyhow::Result<()> {
        for (flag, given) in [
            ("--ood", !self.ood.is_empty()),
            ("--intervals", self.intervals),
            ("--report", self.report.is_some()),
        ] {
            ensure!(
                !given,
                "{flag}: it is for classes, and {} predicts a number; leave it out",
                self.run.display()
            );
        }
        let table = match &self.data {
            _ if self.held_out => run.held_out()?,
            Some(place) => run.table(place, Split::Test)?,
            None => run.table(&run.folder.config.data.train, Split::Test)?,
        };
        let metrics = run.evaluate(&table, self.samples, self.seed)?;
        run.folder.write_metrics(&metrics)?;
        if self.json {
            return print(&json_line(&metrics)?);
        }
        print(&text(&metrics))
    }
}

fn text(metrics: &TargetMetrics) -> String {
    let report = &metrics.report;
    let mut text = format!(
        "{} after {} steps, {} posterior samples\n{}: {} rows, target {}\n",
        metrics.model, metrics.steps, metrics.samples, metrics.data, report.rows, metrics.target
    );
    for (name, value) in [
        ("RMSE", report.rmse),
        ("of the mean", metrics.rmse_of_mean),
        ("MAE", report.mae),
        ("log likelihood", report.log_likelihood),
        ("CRPS", report.crps),
        ("90 % coverage", report.coverage90),
        ("90 % width", report.width90),
        ("calibration", report.calibration_error),
    ] {
        text.push_str(&format!("  {name:<16}{value:>10.4}\n"));
    }
    text
}
