//! `circulant predict` where the target is a number or a count.

use circulant_data::npy;
use serde::Serialize;

use super::Predict;
use crate::commands::output::{RowFormat, print};
use crate::experiments::regression::LoadedRegression;
use crate::experiments::version::VERSION;
use crate::files::write;
use crate::ranks::say;

/// The probability inside of the interval.
const COVERAGE: f64 = 0.9;

/// What is known about one target.
#[derive(Serialize)]
struct TargetRow {
    version: u32,
    index: usize,
    mean: f64,
    deviation: f64,
    aleatoric: f64,
    epistemic: f64,
    lower: f64,
    upper: f64,
}

impl TargetRow {
    fn numbers(&self) -> [f64; 6] {
        [
            self.mean,
            self.deviation,
            self.aleatoric,
            self.epistemic,
            self.lower,
            self.upper,
        ]
    }
}

impl Predict {
    pub(super) fn targets(&self, run: &LoadedRegression) -> anyhow::Result<()> {
        let (samples, guarantee) = (self.samples as usize, self.coverage.of_numbers()?);
        let table = run.table(&self.data, self.split)?;
        let found = run.predict(&table, samples, self.seed)?;
        let deviations = found.deviation();
        let (aleatoric, epistemic) = (found.aleatoric_deviation(), found.epistemic_deviation());
        let intervals = match guarantee {
            None => found.interval(COVERAGE)?,
            Some(guarantee) => {
                let calibrated = guarantee.calibrate_intervals(run, samples, self.seed)?;
                say!("{}", calibrated.line());
                calibrated.of(&found)?
            }
        };
        let means = found.mean();
        let row = |index: usize| TargetRow {
            version: VERSION,
            index,
            mean: means[index],
            deviation: deviations[index],
            aleatoric: aleatoric[index],
            epistemic: epistemic[index],
            lower: intervals[index][0],
            upper: intervals[index][1],
        };
        let rows: Vec<TargetRow> = (0..found.rows()).map(row).collect();
        match &self.out {
            None if self.json => print(&json_lines(&rows)?),
            None => print(&csv(&rows)?),
            Some(file) => {
                let bytes = match file.format {
                    RowFormat::Csv => csv(&rows)?.into_bytes(),
                    RowFormat::Json => (serde_json::to_string_pretty(&rows)? + "\n").into_bytes(),
                    RowFormat::JsonLines => json_lines(&rows)?.into_bytes(),
                    RowFormat::Npy => {
                        let numbers = rows.iter().flat_map(TargetRow::numbers);
                        let values: Vec<f32> = numbers.map(|x| x as f32).collect();
                        npy::f32_bytes(&[rows.len(), 6], &values)
                    }
                };
                write(&file.path, &bytes)?;
                say!("{} predictions in {}", rows.len(), file.path.display());
                Ok(())
            }
        }
    }
}

fn json_lines(rows: &[TargetRow]) -> anyhow::Result<String> {
    let mut text = String::new();
    for row in rows {
        text.push_str(&serde_json::to_string(row)?);
        text.push('\n');
    }
    Ok(text)
}

fn csv(rows: &[TargetRow]) -> anyhow::Result<String> {
    let mut text = "index,mean,deviation,aleatoric,epistemic,lower,upper\n".to_owned();
    for row in rows {
        let numbers = row.numbers().map(|x| x.to_string());
        text.push_str(&format!("{},{}\n", row.index, numbers.join(",")));
    }
    Ok(text)
}
