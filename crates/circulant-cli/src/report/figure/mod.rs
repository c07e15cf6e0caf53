//! Figures: plain data in, an SVG out. Each kind is a struct with public fields and a `draw` method that
//! never fails: what cannot be drawn is left out and counted below the axes, and a figure without any
//! data says so. The same data give the same bytes.

mod canvas;
mod certified;
mod curves;
mod density;
mod filters;
mod histogram;
mod ink;
mod lines;
mod reliability;
mod scale;
mod scatter;
mod sheet;
mod spectrum;
mod text;

pub use certified::{CertifiedAccuracy, Radii};
pub use curves::{Curve, CurveLook, Curves};
pub use density::{Densities, Density, ENTROPY_ZOOM};
pub use filters::{Filter, Filters};
pub use histogram::{Distribution, Histograms};
pub use ink::{Ink, figure_css};
pub use reliability::{Reliability, ReliabilityBar};
pub use scale::{Axis, AxisKind};
pub use scatter::{LabelledPoint, PointGroup, Scatter};
pub use sheet::Drawing;
pub use spectrum::{Spectra, Spectrum};

#[cfg(test)]
mod tests;
