//! How the layout of a spectral layer reaches those who walk through a module.
//!
//! A visitor of Burn sees parameters, and the names of fields and containers around them; it never sees a layer itself. So a
//! spectral layer holds a module without parameters that is entered under a name that spells the layout.
//! [`BayesianConfig`](crate::bayes::BayesianConfig) finds the spectral prior of the layer's coordinates by it, in any module.

use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::tensor::Device;

use crate::operator::{HalfPlane, HalfSpectrum, Layout};

/// What Burn calls the container that is entered.
const CONTAINER: &str = "Struct:SpectrumMark";

/// The field of a spectral layer that a mark belongs to.
pub(crate) const COORDINATES: &str = "coordinates";

#[derive(Debug, Clone)]
pub(crate) struct SpectrumMark(String);

impl SpectrumMark {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self(match layout {
            Layout::Signal(half) => format!("{} {}", half.length(), half.modes()),
            Layout::Image {
                plane,
                channels_in,
                channels_out,
            } => format!(
                "{} {} {} {channels_in} {channels_out}",
                plane.height(),
                plane.width(),
                plane.cutoff().to_bits()
            ),
        })
    }

    /// The layout, if a mark was entered.
    pub(crate) fn layout(name: &str, container: &str) -> Option<Layout> {
        if container != CONTAINER {
            return None;
        }
        let numbers: Result<Vec<u64>, _> = name.split(' ').map(str::parse).collect();
        let size = |number: u64| usize::try_from(number).ok();
        match numbers.ok()?[..] {
            [length, modes] => {
                let half = HalfSpectrum::with_modes(size(length)?, size(modes)?);
                Some(Layout::Signal(half.ok()?))
            }
            [height, width, cutoff, channels_in, channels_out] => {
                let (height, width) = (size(height)?, size(width)?);
                let plane = HalfPlane::with_radius(height, width, f64::from_bits(cutoff));
                Some(Layout::Image {
                    plane: plane.ok()?,
                    channels_in: size(channels_in)?,
                    channels_out: size(channels_out)?,
                })
            }
            _ => None,
        }
    }
}

impl Module for SpectrumMark {
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        visitor.enter_module(&self.0, CONTAINER);
        visitor.exit_module(&self.0, CONTAINER);
    }

    fn map<M: ModuleMapper>(self, _mapper: &mut M) -> Self {
        self
    }

    fn collect_devices(&self, devices: Devices) -> Devices {
        devices
    }

    fn fork(self, _device: &Device) -> Self {
        self
    }

    fn to_device(self, _device: &Device) -> Self {
        self
    }

    fn train(self) -> Self {
        self
    }

    fn valid(&self) -> Self {
        self.clone()
    }

    fn materialize(self) -> Self {
        self
    }
}

impl ModuleDisplayDefault for SpectrumMark {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_formatted(&self.0).optional()
    }
}

impl ModuleDisplay for SpectrumMark {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_spells_its_layout() {
        let image = |plane| Layout::Image {
            plane,
            channels_in: 2,
            channels_out: 3,
        };
        for layout in [
            Layout::Signal(HalfSpectrum::new(9).unwrap()),
            Layout::Signal(HalfSpectrum::with_modes(12, 4).unwrap()),
            image(HalfPlane::new(4, 6).unwrap()),
            image(HalfPlane::with_radius(5, 7, 0.7).unwrap()),
        ] {
            let mark = SpectrumMark::new(&layout);
            assert_eq!(SpectrumMark::layout(&mark.0, CONTAINER), Some(layout));
        }
        assert_eq!(SpectrumMark::layout("4 3", "Struct:Linear"), None);
        assert_eq!(SpectrumMark::layout("weight", CONTAINER), None);
    }
}
