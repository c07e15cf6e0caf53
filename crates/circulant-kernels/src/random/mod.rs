//! Values from a counter: the same key and position give the same number on every machine.

pub mod normal;
pub mod philox;
