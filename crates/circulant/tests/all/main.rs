//! The tests that run with f32 as the float type, as users do, in one program: it is linked once.

mod adapters;
mod calibration;
mod certified;
mod checkpoints;
#[path = "../common/mod.rs"]
mod common;
mod formats;
mod geometry;
mod geometry_rounding;
mod geometry_training;
mod layers;
mod metrics;
mod own_modules;
mod parallel;
mod predictive;
mod prior;
mod records;
mod saved;
mod singular_values;
mod stored;
mod supervised;
mod training;
