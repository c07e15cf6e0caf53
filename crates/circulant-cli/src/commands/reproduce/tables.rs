//! `circulant reproduce tables`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

use super::finish;
use crate::experiments::auto;
use crate::experiments::config::RunConfig;
use crate::experiments::interrupt::Interrupt;
use crate::experiments::tables::results::text;
use crate::experiments::tables::{TablesPlan, sets};
use crate::ranks::folder;

/// Tables with given splits, regression and classification, with one default setting for all of them.
///
/// Looks for NAME.csv (or .csv.gz) with NAME-test-mask.csv beside it: one column per split, 1 where a row is in its test part. Every
/// split chooses and trains the model that `circulant train` would on its training rows, and is evaluated on its test rows. Splits that
/// are done are not repeated, so the same command resumes after Ctrl-C.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant reproduce tables --data uci
  circulant reproduce tables --data uci,bench/tables/sets --sets yacht,iris --splits 2 --out runs/quick")]
pub(super) struct Tables {
    /// Folders with the tables, separated by commas.
    #[arg(
        long,
        value_name = "FOLDER,...",
        value_delimiter = ',',
        required = true
    )]
    data: Vec<PathBuf>,
    /// Names of tables, separated by commas [default: all].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    sets: Vec<String>,
    /// At most so many splits of each.
    #[arg(long, value_name = "N", default_value_t = 10)]
    splits: usize,
    /// Posterior samples per prediction.
    #[arg(long, value_name = "N", default_value_t = 100)]
    samples: usize,
    /// Of initial parameters, batches and samples.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Leave the test parts alone, and judge by a tenth of the training rows instead: for choosing settings.
    #[arg(long)]
    validate: bool,
    /// A TOML file with settings that replace the defaults of tables; its size is taken, none is chosen.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder for lines of results and the report.
    #[arg(long, value_name = "FOLDER", default_value = "runs/tables")]
    out: PathBuf,
    /// Print results.json instead of the table.
    #[arg(long)]
    json: bool,
}

impl Tables {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        for (flag, number) in [("--splits", self.splits), ("--samples", self.samples)] {
            ensure!(number > 0, "{flag}: expected 1 or more, got 0");
        }
        let interrupt = Interrupt::listen()?;
        let mut found = sets::find(&self.data)?;
        for name in &self.sets {
            let known: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
            ensure!(
                known.contains(&name.as_str()),
                "--sets: there is no table {name}; found {}",
                known.join(", ")
            );
        }
        if !self.sets.is_empty() {
            found.retain(|(name, _)| self.sets.contains(name));
        }
        let of_tables = |path: &PathBuf| RunConfig::read_over(path, &auto::table_settings(0));
        let settings = self.config.as_ref().map(of_tables).transpose()?;
        let plan = TablesPlan {
            sets: found,
            splits: self.splits,
            samples: self.samples,
            seed: self.seed,
            settings,
            validate: self.validate,
            out: folder(&self.out)?,
        };
        let results = plan.run(&interrupt)?;
        finish(self.json, &results, || text(&results), &self.out)
    }
}
