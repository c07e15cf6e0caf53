//! Intervals that hold a number as often as asked, for a trained run: `mean -+ factor deviation` with the factor that calibration finds.

use anyhow::Context;
use circulant::conformal::{ConformalIntervals, IntervalSummary, smallest_calibration};
use circulant::metrics::Mixtures;
use circulant_data::{EncodedTable, Split};
use serde::Serialize;

use super::conformal::Guarantee;
use super::regression::LoadedRegression;
use super::source::part;

/// Calibrated intervals of a run.
pub struct RunIntervals {
    intervals: ConformalIntervals,
    /// What was calibrated on.
    source: String,
}

/// What was promised and what was found on rows with targets.
#[derive(Debug, Clone, Serialize)]
pub struct IntervalReport {
    /// Asked for.
    pub asked: f64,
    /// What was calibrated on.
    pub calibration: String,
    /// The number of its rows.
    pub calibration_inputs: usize,
    /// What deviations are multiplied by.
    pub factor: f64,
    /// On the rows with targets.
    #[serde(flatten)]
    pub found: IntervalSummary,
}

impl Guarantee {
    /// Calibrates intervals on the data of the guarantee, or on what the run held out.
    pub fn calibrate_intervals(
        &self,
        run: &LoadedRegression,
        samples: usize,
        seed: u64,
    ) -> anyhow::Result<RunIntervals> {
        let table = match &self.calibration {
            Some(place) => {
                let (place, split) = part(place, Split::Test);
                run.table(place, split)?
            }
            None => run.held_out().with_context(|| {
                let needed = smallest_calibration(self.coverage).unwrap_or(usize::MAX);
                format!(
                    "--coverage calibrates on rows that the model has not learned from: name some with --calibration PATH (at least \
                     {needed}), or train with --validation"
                )
            })?,
        };
        self.calibrate_intervals_on(run, &table, samples, seed)
    }

    /// Calibrates intervals on rows with targets.
    pub fn calibrate_intervals_on(
        &self,
        run: &LoadedRegression,
        table: &EncodedTable,
        samples: usize,
        seed: u64,
    ) -> anyhow::Result<RunIntervals> {
        let targets = run.targets_of(table)?;
        let found = run.predict(table, samples, seed)?;
        let (means, deviations) = (found.mean(), found.deviation());
        let intervals = ConformalIntervals::calibrate(self.coverage, &means, &deviations, targets);
        let source = table.inputs.source().to_owned();
        Ok(RunIntervals {
            intervals: intervals.with_context(|| format!("{source} cannot calibrate intervals"))?,
            source,
        })
    }
}

impl RunIntervals {
    /// The intervals of predictions by the same run.
    pub fn of(&self, found: &Mixtures) -> anyhow::Result<Vec<[f64; 2]>> {
        Ok(self
            .intervals
            .intervals(&found.mean(), &found.deviation())?)
    }

    /// What was found on rows with targets.
    pub fn report(&self, found: &Mixtures, targets: &[f64]) -> anyhow::Result<IntervalReport> {
        Ok(IntervalReport {
            asked: self.intervals.coverage(),
            calibration: self.source.clone(),
            calibration_inputs: self.intervals.examples(),
            factor: self.intervals.factor(),
            found: self
                .intervals
                .summary(&found.mean(), &found.deviation(), targets)?,
        })
    }

    /// One line about the calibration.
    pub fn line(&self) -> String {
        format!(
            "lower and upper hold the target with a probability of at least {}: mean -+ {:.4} deviations, calibrated on {} rows of {}",
            self.intervals.coverage(),
            self.intervals.factor(),
            self.intervals.examples(),
            self.source
        )
    }
}
