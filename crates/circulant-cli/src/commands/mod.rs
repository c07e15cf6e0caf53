//! One file per subcommand.

mod advice;
pub mod blocks;
mod certified_flags;
pub mod certify;
pub mod curvature;
pub mod data;
pub mod evaluate;
pub mod export;
pub mod features;
mod flags;
mod guarantee;
pub mod head;
pub mod inspect;
mod output;
pub mod params;
pub mod predict;
mod reading;
pub mod reproduce;
pub mod train;

pub use advice::advice;
