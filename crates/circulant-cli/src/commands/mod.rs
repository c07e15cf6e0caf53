//! One file per subcommand.

pub mod data;
mod output;
pub mod params;
mod reading;
pub mod train;
