//! The parts of the `circulant` program.
//!
//! A library so that the parts can be tested and documented; its interface follows the program and may
//! change with every version.

#![forbid(unsafe_code)]

pub mod commands;
pub mod experiments;
mod files;
pub mod report;
