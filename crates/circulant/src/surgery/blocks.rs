//! How far the dense layers of a module are from circulant blocks of every length: a table, a rule that chooses, and a curve.

use std::fmt;

use burn::module::Module;
use serde::Serialize;

use super::SurgeryError;
use super::projection::Projection;
use super::report::each_linear;
use crate::pretrained::Matrix;

/// What blocks of one length would make of one `Linear` of a module.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BlockReport {
    /// Its path, e.g. `blocks.0.attention.query`.
    pub path: String,
    /// `[in, out]`.
    pub shape: [usize; 2],
    /// The length of a block.
    pub block: usize,
    /// The weights of such a layer.
    pub weights: usize,
    /// `norm(W - C)/norm(W)` with the nearest matrix `C` of such blocks.
    pub relative_error: f64,
}

/// The trade-off of every `Linear` of a module: one row per layer and length of block, in the module's order. Lengths above a
/// layer's larger side are left out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BlockTable {
    /// The rows.
    pub rows: Vec<BlockReport>,
}

/// Projects every `Linear` of a module on blocks of every one of these lengths.
///
/// ```
/// use circulant::models::{ProjectionKind, VisionTransformerConfig};
/// use circulant::surgery::block_table;
///
/// let model = VisionTransformerConfig::new(8, 4, 3, ProjectionKind::Dense)
///     .with_d(8).with_depth(1).with_heads(2).init(&circulant::cpu());
/// let table = block_table(&model, &[1, 2, 4, 8])?;
/// println!("{table}");
/// // The five layers that lose least with blocks of 4, best first.
/// let chosen = table.smallest_errors(4, 5, |path| path.starts_with("blocks"));
/// assert_eq!(chosen.len(), 5);
/// assert!(chosen[0].relative_error <= chosen[4].relative_error);
/// // Error and weights of all layers together, per length of block.
/// let curve = table.curve();
/// assert!(curve[0].relative_error < 1e-6 && curve[3].relative_error > curve[1].relative_error);
/// # Ok::<(), circulant::surgery::SurgeryError>(())
/// ```
pub fn block_table<M: Module>(module: &M, blocks: &[usize]) -> Result<BlockTable, SurgeryError> {
    let rows = each_linear(module, |path, shape, values| {
        rows_of(path, shape, values, blocks)
    })?;
    Ok(BlockTable {
        rows: rows.into_iter().flatten().collect(),
    })
}

fn rows_of(path: &str, shape: [usize; 2], values: &[f64], blocks: &[usize]) -> Vec<BlockReport> {
    let largest = shape[0].max(shape[1]);
    let blocks = blocks.iter().filter(|block| (1..=largest).contains(*block));
    let row = |&block: &usize| BlockReport {
        path: path.to_owned(),
        shape,
        block,
        weights: shape[0].div_ceil(block) * shape[1].div_ceil(block) * block,
        relative_error: Projection::of(values, shape, block).relative_error,
    };
    blocks.map(row).collect()
}

/// One length of block over all layers of a table that can have it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BlockPoint {
    /// The length of a block.
    pub block: usize,
    /// The weights of these layers.
    pub weights: usize,
    /// The weights that they have as matrices.
    pub dense_weights: usize,
    /// The root of the mean squared relative error of the layers.
    pub relative_error: f64,
}

impl BlockTable {
    /// The same for matrices of a checkpoint: their names are the paths. Which axis is the input does not matter to the error.
    pub fn of_matrices(matrices: &[Matrix], blocks: &[usize]) -> Result<Self, SurgeryError> {
        let mut rows = Vec::new();
        for Matrix {
            name,
            shape,
            values,
        } in matrices
        {
            if values.iter().any(|value| !value.is_finite()) {
                let layer = name.clone();
                return Err(SurgeryError::NotFinite { layer });
            }
            rows.extend(rows_of(name, *shape, values, blocks));
        }
        Ok(Self { rows })
    }

    /// The layers that a rule on paths allows, `count` at most, the smallest error first, with blocks of this length.
    pub fn smallest_errors(
        &self,
        block: usize,
        count: usize,
        rule: impl Fn(&str) -> bool,
    ) -> Vec<&BlockReport> {
        let rows = self.rows.iter();
        let mut rows: Vec<_> = rows
            .filter(|row| row.block == block && rule(&row.path))
            .collect();
        rows.sort_by(|a, b| a.relative_error.total_cmp(&b.relative_error));
        rows.truncate(count);
        rows
    }

    /// Error against weights, by rising length of block.
    pub fn curve(&self) -> Vec<BlockPoint> {
        let mut blocks: Vec<usize> = self.rows.iter().map(|row| row.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let point = |block: usize| {
            let rows: Vec<_> = self.rows.iter().filter(|row| row.block == block).collect();
            let squares: f64 = rows.iter().map(|row| row.relative_error.powi(2)).sum();
            BlockPoint {
                block,
                weights: rows.iter().map(|row| row.weights).sum(),
                dense_weights: rows.iter().map(|row| row.shape[0] * row.shape[1]).sum(),
                relative_error: (squares / rows.len() as f64).sqrt(),
            }
        };
        blocks.into_iter().map(point).collect()
    }
}

impl fmt::Display for BlockTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = self.rows.iter().map(|row| row.path.len()).max();
        let width = widest.unwrap_or(0).max("layer".len());
        writeln!(
            f,
            "{:<width$}{:>8}{:>8}{:>8}{:>12}{:>10}",
            "layer", "in", "out", "block", "weights", "error"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:<width$}{:>8}{:>8}{:>8}{:>12}{:>10.4}",
                row.path, row.shape[0], row.shape[1], row.block, row.weights, row.relative_error
            )?;
        }
        Ok(())
    }
}
