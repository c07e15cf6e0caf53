//! Figures: plain data in, an SVG out. Drawing never fails: what cannot be drawn is left out and counted
//! below the axes, and a figure without any data says so. The same data give the same bytes.

mod canvas;
mod certified;
mod curves;
mod density;
mod filters;
mod gallery;
mod histogram;
mod ink;
mod lines;
mod reliability;
mod scale;
mod scatter;
mod sheet;
mod text;

pub use certified::{Radii, certified_accuracy};
pub use curves::{Curve, CurveLook, Curves};
pub use density::densities;
pub use filters::{Filter, Filters};
pub use gallery::{Gallery, GalleryPicture};
pub use histogram::{Distribution, histograms};
pub use ink::figure_css;
pub use reliability::Reliability;
pub use scale::Axis;
pub use scatter::{LabelledPoint, PointGroup, scatter};
pub use sheet::Drawing;

#[cfg(test)]
mod tests;
