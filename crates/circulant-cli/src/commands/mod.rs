//! One file per subcommand.

pub mod data;
pub mod params;
