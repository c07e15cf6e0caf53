mod attention;
mod dropout;
mod gelu;
mod gelu_dropout;
mod layer_norm;
mod residual;
