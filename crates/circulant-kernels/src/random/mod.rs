//! Numbers from a counter: the same key and position give the same number on every machine.

pub(crate) mod normal;
pub(crate) mod philox;
