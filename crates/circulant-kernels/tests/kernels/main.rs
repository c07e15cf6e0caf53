//! Tests of the kernels, room by room, in one program: the crate is compiled once for them and for its
//! users. `laws` are properties that hold for every size, `oracle` has slow, obvious versions.

#![allow(clippy::unwrap_used, reason = "parts of tests")]

mod dense;
mod elements;
mod gaussian;
mod laws;
mod norms;
mod operator;
mod optimisers;
mod oracle;
mod random;
mod real;
mod rooms;
mod runtime;
mod soundness;
mod transform;
mod transformer;
mod vector;
