//! The program as a process. One test program: each would link everything again.

#![allow(clippy::unwrap_used, reason = "parts of tests")]

mod blocks;
mod certified;
mod commands;
mod data;
mod devices;
mod disks;
mod export;
mod export_values;
mod features;
mod formats;
mod heads;
mod interruption;
mod layer_figures;
mod pictures;
mod ranks;
mod refusals;
mod reproduce;
mod selection;
mod support;
mod tables;
mod untrusted;
mod usage;
mod vit;
