//! One file per subcommand.

pub mod data;
pub mod evaluate;
mod output;
pub mod params;
mod reading;
pub mod reproduce;
pub mod train;
