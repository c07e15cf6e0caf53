mod convolution;
mod large_product;
mod linear;
mod linear_stack;
mod small_product;
