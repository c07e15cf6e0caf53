//! Ways out of a run: the same network for a device, as C, as a Rust crate, as ONNX, as dense layers, as a page.
//!
//! | file | what |
//! | --- | --- |
//! | `network.rs` | the posterior of a run layer by layer, in plain numbers |
//! | `device.rs` | a model of `circulant-edge`, with the bounds that its radii need |
//! | `agreement.rs` | its predictions beside the program's |
//! | `source.rs` | a folder of C99, or a Rust crate, around that model |
//! | `matrices.rs`, `onnx.rs` | dense layers as safetensors, and ONNX of matrix products |
//! | `orthogonal.rs` | networks of orthogonal convolutions in plain numbers, and as torch |
//! | `page.rs` | the playground with that model in it |

pub mod agreement;
pub mod device;
pub mod matrices;
pub mod network;
pub mod onnx;
pub mod orthogonal;
pub mod page;
pub mod source;
