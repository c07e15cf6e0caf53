//! `circulant blocks`: what circulant blocks would make of the matrices of a checkpoint.

use std::path::PathBuf;

use anyhow::ensure;
use circulant::pretrained::matrices;
use circulant::surgery::{BlockPoint, BlockReport, BlockTable};
use clap::Args;
use serde::Serialize;

use super::output::{json_line, print};
use crate::files::write;
use crate::report::figure::{Axis, Curve, Curves, Drawing};
use crate::report::number::grouped;

/// See what circulant blocks would cost a trained model: the error of every matrix for every length of block.
///
/// Reads safetensors and files of torch.save. The error of a matrix W is that of the nearest matrix C of circulant blocks,
/// |W - C|/|W| in the Frobenius norm: 0 is exact, 1 keeps nothing. Random matrices have sqrt(1 - 1/BLOCK). A layer that is far
/// away can still be a good start for fine-tuning (`circulant::surgery::transfer` in the library).
#[derive(Args)]
#[command(after_help = "Examples:
  circulant blocks model.safetensors
  circulant blocks model.safetensors --lengths 8,16,32 --only mlp --figure trade-off.svg
  circulant blocks model.pt --json")]
pub struct Blocks {
    /// A checkpoint.
    file: PathBuf,
    /// Lengths of blocks, separated by commas.
    #[arg(
        long,
        value_name = "B",
        value_delimiter = ',',
        default_value = "2,4,8,16,32,64"
    )]
    lengths: Vec<usize>,
    /// Only matrices with this in their name.
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// Write error against weights as a picture.
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct BlocksOutput<'a> {
    file: &'a PathBuf,
    /// All matrices together, by length of block.
    curve: Vec<BlockPoint>,
    matrices: &'a [BlockReport],
}

impl Blocks {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        ensure!(
            self.lengths.iter().all(|length| *length > 0),
            "--lengths: expected 1 or more, got 0"
        );
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        lengths.dedup();
        let mut found = matrices(&self.file)?;
        let count = found.len();
        found.retain(|matrix| matrix.name.contains(&self.only));
        ensure!(
            !found.is_empty(),
            "{}: none of its {count} matrices has {:?} in its name; leave out --only to see all",
            self.file.display(),
            self.only
        );
        let table = BlockTable::of_matrices(&found, &lengths)?;
        ensure!(
            !table.rows.is_empty(),
            "--lengths: no matrix of {} is as long as the shortest block of {}",
            self.file.display(),
            lengths[0]
        );
        if let Some(path) = &self.figure {
            write(path, figure(&table).standalone())?;
        }
        let curve = table.curve();
        if self.json {
            return print(&json_line(&BlocksOutput {
                file: &self.file,
                curve,
                matrices: &table.rows,
            })?);
        }
        print(&(table.to_string() + &together(&curve)))
    }
}

/// The table of all matrices together.
fn together(curve: &[BlockPoint]) -> String {
    let mut text = format!(
        "\n{:<16}{:>14}{:>14}{:>10}\n",
        "all together", "dense weights", "weights", "error"
    );
    for point in curve {
        text.push_str(&format!(
            "{:<16}{:>14}{:>14}{:>10.4}\n",
            format!("blocks of {}", point.block),
            grouped(point.dense_weights as u64),
            grouped(point.weights as u64),
            point.relative_error
        ));
    }
    text
}

fn figure(table: &BlockTable) -> Drawing {
    let curve = table.curve();
    let share = |point: &BlockPoint| point.weights as f64 / point.dense_weights as f64;
    // Positions along the axis rise.
    let points = || curve.iter().rev();
    let all = Curve::new(
        "all together",
        points().map(share).collect(),
        points().map(|point| point.relative_error).collect(),
    );
    let random = Curve::new(
        "random matrices",
        points().map(share).collect(),
        points()
            .map(|point| (1.0 - 1.0 / point.block as f64).sqrt())
            .collect(),
    );
    Curves {
        title: "Circulant blocks in the place of matrices".to_owned(),
        x: Axis::log("weights, as a share of the dense ones"),
        y: Axis::linear("relative error"),
        curves: vec![all, random],
    }
    .draw()
}
