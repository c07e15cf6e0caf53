mod chunks;
mod partial_sums;
mod scratch;
mod threads;
