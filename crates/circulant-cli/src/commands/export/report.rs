//! What an export says about itself.

use std::path::PathBuf;

use serde::Serialize;

use crate::experiments::exporting::agreement::{AgreementRow, ValueRow};

/// What `--json` prints.
#[derive(Serialize)]
pub(super) struct ExportOutput {
    pub(super) out: PathBuf,
    pub(super) bytes: usize,
    /// Complex numbers for drawing weights, and for drawing sums alone.
    pub(super) memory: Option<usize>,
    pub(super) memory_for_sums: Option<usize>,
    pub(super) samples: u32,
    pub(super) images: Option<usize>,
    pub(super) rows: Rows,
}

/// The comparison: of classes or of numbers.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Rows {
    Classes(Vec<AgreementRow>),
    Values(Vec<ValueRow>),
}

impl ExportOutput {
    /// The comparison as a table.
    pub(super) fn text(&self) -> String {
        let share = |value: Option<f64>| value.map_or("-".to_owned(), |x| format!("{x:.4}"));
        let mut text = String::new();
        match (&self.rows, self.images) {
            (_, None) => {}
            (Rows::Classes(rows), Some(images)) => {
                text.push_str(&format!(
                    "{images} images, {} networks drawn\n{:<34}{:>10}{:>9}{:>9}{:>14}{:>14}\n",
                    self.samples, "", "accuracy", "ECE", "NLL", "largest", "rank of"
                ));
                text.push_str(&format!("{:>76}{:>14}\n", "difference", "entropies"));
                for row in rows {
                    text.push_str(&format!(
                        "{:<34}{:>10}{:>9}{:>9}{:>14.2e}{:>14.5}\n",
                        row.name,
                        share(row.accuracy),
                        share(row.ece),
                        share(row.nll),
                        row.largest_difference,
                        row.entropy_correlation
                    ));
                }
            }
            (Rows::Values(rows), Some(rows_compared)) => {
                text.push_str(&format!(
                    "{rows_compared} rows, {} networks drawn; largest differences from this program\n{:<34}{:>12}{:>12}{:>12}{:>12}\n",
                    self.samples, "", "RMSE", "mean", "deviation", "noise"
                ));
                for row in rows {
                    text.push_str(&format!(
                        "{:<34}{:>12}{:>12.2e}{:>12.2e}{:>12.2e}\n",
                        row.name,
                        share(row.rmse),
                        row.largest_difference,
                        row.largest_of_deviations,
                        row.largest_of_noises
                    ));
                }
            }
        }
        let memory = self.memory_for_sums.map_or(String::new(), |memory| {
            format!(", memory of {} bytes", 8 * memory)
        });
        text.push_str(&format!(
            "{}: {} bytes{memory}\n",
            self.out.display(),
            self.bytes
        ));
        text
    }
}
