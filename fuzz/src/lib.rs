//! The bodies of the fuzz targets, one function per reader of foreign files. They panic, hang or fill the
//! memory if the reader does; what it returns does not matter.

mod data;
mod device;
#[cfg(feature = "models")]
mod models;

pub use data::*;
pub use device::device;
#[cfg(feature = "models")]
pub use models::*;
