//! One file per subcommand.

pub mod certify;
pub mod data;
pub mod inspect;
mod output;
pub mod params;
pub mod predict;
mod reading;
pub mod train;
