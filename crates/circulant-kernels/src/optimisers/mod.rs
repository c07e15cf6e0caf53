//! Steps of optimisers.

pub mod adam;
pub mod adan;
