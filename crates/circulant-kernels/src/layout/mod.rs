//! Which real coordinates make up a half spectrum: the map T, its adjoint, and masks.

pub(crate) mod bins;
pub(crate) mod half_plane;
pub(crate) mod half_spectrum;
