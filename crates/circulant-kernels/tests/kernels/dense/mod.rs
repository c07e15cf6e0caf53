mod convolution;
mod large_product;
mod linear;
mod small_product;
