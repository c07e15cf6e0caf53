//! `circulant evaluate` where the target is a number or a count.

use anyhow::ensure;
use circulant::data::BatchOrder;
use circulant_data::{EncodedTable, Split};

use super::Evaluate;
use crate::commands::output::{json_line, print};
use crate::experiments::conformal::Guarantee;
use crate::experiments::intervals::IntervalReport;
use crate::experiments::regression::{LoadedRegression, TargetMetrics};
use crate::ranks::say;

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
        let has_held_out = run.folder.config.data.validation > 0;
        let table = match &self.data {
            Some(place) => run.table(place, Split::Test)?,
            None if self.held_out || has_held_out => run.held_out()?,
            None => {
                let place = &run.folder.config.data.train;
                say!(
                    "{place}: the rows that the model has learned from; name others with --data, or train with --validation"
                );
                ensure!(
                    self.coverage.of_numbers()?.is_none(),
                    "--coverage: it takes rows that the model has not learned from; name some with --data, or train with --validation"
                );
                run.table(place, Split::Test)?
            }
        };
        let mut metrics = run.evaluate(&table, self.samples, self.seed)?;
        if let Some(guarantee) = self.coverage.of_numbers()? {
            metrics.promised = Some(self.promised(&guarantee, run, &table)?);
        }
        run.folder.write_metrics(&metrics)?;
        if self.json {
            return print(&json_line(&metrics)?);
        }
        print(&text(&metrics))
    }

    /// Calibrated on other rows, or on one half of these and evaluated on the other.
    fn promised(
        &self,
        guarantee: &Guarantee,
        run: &LoadedRegression,
        table: &EncodedTable,
    ) -> anyhow::Result<IntervalReport> {
        let has_held_out = run.folder.config.data.validation > 0;
        let other = self.data.is_some() && has_held_out;
        if guarantee.calibration.is_some() || other {
            let calibrated = guarantee.calibrate_intervals(run, self.samples, self.seed)?;
            let found = run.predict(table, self.samples, self.seed)?;
            return calibrated.report(&found, run.targets_of(table)?);
        }
        let rows = table.inputs.shape()[0];
        ensure!(
            rows > 1,
            "{} has one row, which cannot both calibrate and evaluate; name data with --calibration",
            table.inputs.source()
        );
        let mut order = BatchOrder::new(self.seed, rows, rows)?;
        let (calibration, rest) = order.at(0).split_at(rows / 2);
        let [calibration, rest] = [calibration, rest].map(|rows| table.select(rows));
        let rest = rest?;
        let calibrated =
            guarantee.calibrate_intervals_on(run, &calibration?, self.samples, self.seed)?;
        let found = run.predict(&rest, self.samples, self.seed)?;
        calibrated.report(&found, run.targets_of(&rest)?)
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
    if let Some(promised) = &metrics.promised {
        let found = &promised.found;
        text.push_str(&format!(
            "intervals for a coverage of {}: mean -+ {:.4} deviations, calibrated on {} rows of {}; {} rows\n  {:<16}{:>10.4}\n  {:<16}{:>10.4}\n",
            promised.asked,
            promised.factor,
            promised.calibration_inputs,
            promised.calibration,
            found.inputs,
            "coverage",
            found.coverage,
            "mean width",
            found.mean_width
        ));
    }
    text
}
