//! Dense products and convolutions: nothing here is circulant.

pub(crate) mod convolution;
pub(crate) mod large_product;
pub(crate) mod linear;
pub(crate) mod linear_stack;
pub(crate) mod small_product;
