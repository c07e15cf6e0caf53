//! The tests against oracles in f64, in one program. The float type of a device is set once per process, before any tensor:
//! every test here takes its device from [`common::double`].

mod blocks;
#[path = "../common/mod.rs"]
mod common;
mod curvature;
mod curvature_transformer;
mod diagonals;
mod geometry_norms;
mod gradients;
mod hyper_dual;
mod laws;
mod orthogonal;
mod perceptron;
mod posterior;
mod pretrained;
mod regression;
mod surgery;
mod surgery_blocks;
mod svi;
mod torch_transformer;
mod transformer;
