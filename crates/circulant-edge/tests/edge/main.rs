//! The runtime against slow, obvious oracles, and files that are no models.

mod draws;
mod networks;
mod outcomes;
mod padding;
mod predictions;
mod refusals;

mod support;
