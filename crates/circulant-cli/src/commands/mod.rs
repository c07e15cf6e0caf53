//! One file per subcommand.

pub mod params;
