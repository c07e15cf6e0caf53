//! Devices by name: `flex`, `ndarray`, `wgpu`, `cuda:1`.
//!
//! Flex is the processor with the native kernels, and always there. Every other backend is a feature of this crate of the same name, and
//! composes the layers of ordinary tensor operations; `docs/backends.md` has what runs where.

use std::fmt;
use std::str::FromStr;

use burn::tensor::{Device, DeviceType};
use serde::{Deserialize, Serialize};

/// The backends of Burn that have devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendKind {
    /// The processor, with the native kernels.
    #[default]
    Flex,
    /// The processor by CubeCL.
    Cpu,
    /// Graphics cards of NVIDIA.
    Cuda,
    /// Graphics cards of Apple, through wgpu.
    Metal,
    /// The processor by the crate `ndarray`.
    NdArray,
    /// Graphics cards of AMD.
    Rocm,
    /// LibTorch, on the processor.
    Tch,
    /// Graphics cards by Vulkan, with SPIR-V.
    Vulkan,
    /// WebGPU, as browsers have it.
    WebGpu,
    /// Graphics cards by whatever interface there is.
    Wgpu,
}

impl BackendKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Flex,
        Self::Cpu,
        Self::Cuda,
        Self::Metal,
        Self::NdArray,
        Self::Rocm,
        Self::Tch,
        Self::Vulkan,
        Self::WebGpu,
        Self::Wgpu,
    ];

    /// The name, of the feature too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flex => "flex",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Metal => "metal",
            Self::NdArray => "ndarray",
            Self::Rocm => "rocm",
            Self::Tch => "tch",
            Self::Vulkan => "vulkan",
            Self::WebGpu => "webgpu",
            Self::Wgpu => "wgpu",
        }
    }

    /// Those that were compiled in.
    pub fn compiled() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|kind| kind.device_type().is_some())
    }

    pub(crate) fn names_of_compiled() -> String {
        let names: Vec<&str> = Self::compiled().map(Self::name).collect();
        names.join(", ")
    }

    /// What Burn calls it, if it was compiled in.
    fn device_type(self) -> Option<DeviceType> {
        match self {
            Self::Flex => Some(DeviceType::Flex),
            #[cfg(feature = "cpu")]
            Self::Cpu => Some(DeviceType::Cpu),
            #[cfg(feature = "cuda")]
            Self::Cuda => Some(DeviceType::Cuda),
            #[cfg(feature = "metal")]
            Self::Metal => Some(DeviceType::Metal),
            #[cfg(feature = "ndarray")]
            Self::NdArray => Some(DeviceType::NdArray),
            #[cfg(feature = "rocm")]
            Self::Rocm => Some(DeviceType::Rocm),
            #[cfg(feature = "tch")]
            Self::Tch => Some(DeviceType::LibTorch),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Some(DeviceType::Vulkan),
            #[cfg(feature = "webgpu")]
            Self::WebGpu => Some(DeviceType::WebGpu),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Some(DeviceType::Wgpu),
            #[allow(unreachable_patterns, reason = "not with all features")]
            _ => None,
        }
    }
}

/// A device by its name: a backend, and which of its devices, from 0.
///
/// ```
/// use circulant::device::DeviceName;
///
/// let name: DeviceName = "flex".parse()?;
/// assert_eq!(name.open()?, circulant::cpu());
/// let absent = "flex:7".parse::<DeviceName>()?.open().unwrap_err();
/// assert!(absent.to_string().contains("flex:0"));
/// # Ok::<(), circulant::device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceName {
    /// The backend.
    pub backend: BackendKind,
    /// Which of its devices; the backend chooses when absent.
    pub index: Option<usize>,
}

/// A device that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No backend has that name.
    #[error("expected a device ({expected}), with `:N` for the one of number N, got {got:?}")]
    Unknown {
        /// All names.
        expected: String,
        /// What was given.
        got: String,
    },
    /// The backend was not compiled in.
    #[error(
        "the device {name} is not part of this build, which has {compiled}; build with `--features {name}`"
    )]
    NotCompiled {
        /// The backend, and the feature that brings it.
        name: &'static str,
        /// Those there are.
        compiled: String,
    },
    /// The machine does not have it.
    #[error("there is no device {name} on this machine: {found}")]
    Absent {
        /// What was asked for.
        name: DeviceName,
        /// What the backend found.
        found: String,
    },
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.backend.name())?;
        match self.index {
            None => Ok(()),
            Some(index) => write!(f, ":{index}"),
        }
    }
}

impl FromStr for DeviceName {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Unknown {
            expected: BackendKind::ALL.map(BackendKind::name).join(", "),
            got: text.to_owned(),
        };
        let (name, index) = match text.split_once(':') {
            None => (text, None),
            Some((name, index)) => (name, Some(index.parse().map_err(|_| unknown())?)),
        };
        let mut all = BackendKind::ALL.into_iter();
        let backend = all.find(|kind| kind.name() == name).ok_or_else(unknown)?;
        Ok(Self { backend, index })
    }
}

impl TryFrom<String> for DeviceName {
    type Error = DeviceError;

    fn try_from(text: String) -> Result<Self, DeviceError> {
        text.parse()
    }
}

impl From<DeviceName> for String {
    fn from(name: DeviceName) -> Self {
        name.to_string()
    }
}

impl DeviceName {
    /// Whether the native kernels run on it.
    pub fn is_native(self) -> bool {
        self.backend == BackendKind::Flex
    }

    /// The device, without autodiff. One that was not compiled in, or that the machine does not have, is an error.
    pub fn open(self) -> Result<Device, DeviceError> {
        let Some(device_type) = self.backend.device_type() else {
            return Err(DeviceError::NotCompiled {
                name: self.backend.name(),
                compiled: BackendKind::names_of_compiled(),
            });
        };
        let mut found: Vec<Device> = Device::enumerate(device_type).into_iter().collect();
        let (count, index) = (found.len(), self.index.unwrap_or(0));
        #[cfg(feature = "wgpu")]
        if self.backend == BackendKind::Wgpu && self.index.is_none() && count > 0 {
            // The first one need not be the fastest.
            return Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice));
        }
        if index < count {
            return Ok(found.swap_remove(index));
        }
        let name = self.backend.name();
        Err(DeviceError::Absent {
            name: self,
            found: match count {
                0 => format!("{name} finds none; is its driver installed?"),
                1 => format!("{name} finds one, {name}:0"),
                _ => format!("{name} finds {count}, {name}:0 to {name}:{}", count - 1),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for kind in BackendKind::ALL {
            for index in [None, Some(0), Some(12)] {
                let name = DeviceName {
                    backend: kind,
                    index,
                };
                assert_eq!(name.to_string().parse(), Ok(name));
                let text = serde_json::to_string(&name).expect("writes");
                assert_eq!(serde_json::from_str::<DeviceName>(&text).ok(), Some(name));
            }
        }
    }

    #[test]
    fn what_is_no_device_is_named() {
        for text in ["", "gpu", "Flex", "cuda:", "cuda:x", "cuda:-1", "wgpu:1:2"] {
            let error = text.parse::<DeviceName>().expect_err(text).to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
            assert!(error.contains("flex, cpu, cuda"), "{error}");
        }
    }

    /// Without features, every device but Flex; with all of them, none.
    #[test]
    fn a_device_that_was_not_compiled_in_names_its_feature() {
        let compiled: Vec<_> = BackendKind::compiled().collect();
        assert_eq!(compiled[0], BackendKind::Flex);
        for backend in BackendKind::ALL {
            if compiled.contains(&backend) {
                continue;
            }
            let name = DeviceName {
                backend,
                index: None,
            };
            let error = name.open().expect_err("not there").to_string();
            let feature = format!("--features {}", backend.name());
            assert!(
                error.contains(&feature) && error.contains("has flex"),
                "{error}"
            );
        }
    }

    #[test]
    fn devices_that_the_machine_lacks_are_counted() {
        for backend in BackendKind::compiled() {
            let index = Some(1000);
            let error = DeviceName { backend, index }
                .open()
                .expect_err("not so many")
                .to_string();
            let name = backend.name();
            assert!(error.contains(&format!("{name}:1000")), "{error}");
            assert!(error.contains(&format!("{name} finds ")), "{error}");
        }
    }
}
