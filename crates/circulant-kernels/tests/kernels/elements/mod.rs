mod cross_entropy;
mod elementwise;
mod ensemble;
mod gather;
