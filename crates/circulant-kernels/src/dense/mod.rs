//! Dense products and convolutions: nothing here is circulant.

pub mod convolution;
pub mod large_product;
pub mod linear;
pub mod linear_stack;
pub mod small_product;
