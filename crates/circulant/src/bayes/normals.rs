//! The random numbers of draws, on whatever device they are drawn.
//!
//! The native kernels make them on the way, from a name. For every other device the host makes the same numbers and uploads those of all
//! parameters in one piece: a transfer costs as much as a small step, however little it carries.

use burn::tensor::{Device, Tensor, TensorData};
use circulant_kernels::standard_normal;

use super::posterior::FromNormals;
use crate::backend::fused::is_native;
use crate::noise::NoiseKey;

/// The standard normal numbers of several draws, in their order.
pub(super) enum Normals {
    /// By name.
    Named(std::vec::IntoIter<NoiseKey>),
    /// As numbers.
    Uploaded {
        /// Absent if no draw needs any.
        all: Option<Box<Tensor<1>>>,
        taken: usize,
    },
}

impl Normals {
    /// Of these names, so many each.
    pub(super) fn new(streams: Vec<(NoiseKey, usize)>, device: &Device) -> Self {
        if is_native(device) {
            let keys: Vec<NoiseKey> = streams.into_iter().map(|(key, _)| key).collect();
            return Self::Named(keys.into_iter());
        }
        let count = streams.iter().map(|(_, count)| count).sum();
        let mut numbers = vec![0.0_f32; count];
        let mut rest = &mut numbers[..];
        for (key, count) in streams {
            let (own, others) = rest.split_at_mut(count);
            standard_normal(key, own);
            rest = others;
        }
        let all = TensorData::new(numbers, [count]);
        Self::Uploaded {
            all: (count > 0).then(|| Box::new(Tensor::from_data(all, device))),
            taken: 0,
        }
    }

    /// The next draw, which is one of `q`.
    pub(super) fn draw(&mut self, q: &impl FromNormals) -> Tensor<1> {
        match self {
            Self::Named(keys) => q.sample(keys.next().expect("a name per draw")),
            Self::Uploaded { all, taken } => {
                let count = q.normals();
                let start = *taken;
                *taken += count;
                let own = all.as_ref().filter(|_| count > 0);
                q.sample_of(own.map(|all| Tensor::clone(all).narrow(0, start, count)))
            }
        }
    }
}
