//! Steps of optimisers.

pub(crate) mod adam;
pub(crate) mod adan;
