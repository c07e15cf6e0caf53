//! The kernels' norms under one roof.

pub(super) use super::shim::{
    NormEnclosure, clip_norm_1d, clip_norm_2d, convolution_norm_bound, matrix_norm,
    operator_norm_1d, operator_norm_2d,
};
