mod attention;
mod dropout;
mod gelu;
mod layer_norm;
mod residual;
