//! What an operation has to know besides its tensors: the layout of the spectrum, the channels,
//! the activation; and the plans that follow from it.
//!
//! An [`Operator`] is a handle: cloning it copies two words. Operators of the same layout share
//! one description for the whole process, and with it the plans of the native kernel.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use burn::tensor::DType;
pub use circulant_kernels::{
    Activation, Bin, Complex, HalfPlane, HalfSpectrum, Isometries, KernelError,
};
use circulant_kernels::{CirculantPlan, FilterTransform, volume};

/// One circulant operator without its values.
#[derive(Debug, Clone)]
pub struct Operator {
    description: Arc<Description>,
    activation: Activation,
}

/// Which bins exist, and how they are stored.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Layout {
    /// Signals of one channel: a circulant matrix.
    Signal(HalfSpectrum),
    /// Images: one block-circulant matrix with circulant blocks (BCCB) per channel pair.
    Image {
        /// The half plane of one channel pair.
        plane: HalfPlane,
        /// `C_in`.
        channels_in: usize,
        /// `C_out`.
        channels_out: usize,
    },
}

/// The plans of one number type.
pub(crate) struct Plans<T: circulant_kernels::Real> {
    pub(crate) operator: CirculantPlan<T>,
    pub(crate) filters: FilterTransform<T>,
}

/// Constants of the composed operations, per backend, device and number type.
pub(crate) type ConstantKey = (TypeId, String, DType);

pub(crate) struct Description {
    pub(crate) layout: Layout,
    single: OnceLock<Plans<f32>>,
    double: OnceLock<Plans<f64>>,
    constants: Mutex<HashMap<ConstantKey, Arc<dyn Any + Send + Sync>>>,
}

impl std::fmt::Debug for Description {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.layout.fmt(f)
    }
}

/// Two layouts are the same exactly when these values are.
type Key = (bool, [usize; 5], u64);

impl Layout {
    fn key(&self) -> Key {
        match self {
            Self::Signal(half) => (false, [half.length(), half.modes(), 0, 0, 0], 0),
            Self::Image {
                plane,
                channels_in,
                channels_out,
            } => (
                true,
                [
                    plane.height(),
                    plane.width(),
                    *channels_in,
                    *channels_out,
                    0,
                ],
                plane.cutoff().to_bits(),
            ),
        }
    }

    fn plans<T: circulant_kernels::Real>(&self) -> Plans<T> {
        const CHECKED: &str = "Operator::image checks the channels";
        match self {
            Self::Signal(half) => Plans {
                operator: CirculantPlan::new_1d(half),
                filters: FilterTransform::new_1d(half),
            },
            Self::Image {
                plane,
                channels_in,
                channels_out,
            } => Plans {
                operator: CirculantPlan::new_2d(plane, *channels_in, *channels_out).expect(CHECKED),
                filters: FilterTransform::new_2d(plane, *channels_in, *channels_out)
                    .expect(CHECKED),
            },
        }
    }

    /// `(H, W)`; a signal is an image of one row.
    pub fn grid(&self) -> (usize, usize) {
        match self {
            Self::Signal(half) => (1, half.length()),
            Self::Image { plane, .. } => (plane.height(), plane.width()),
        }
    }

    /// `(C_in, C_out)`.
    pub fn channels(&self) -> (usize, usize) {
        match self {
            Self::Signal(_) => (1, 1),
            Self::Image {
                channels_in,
                channels_out,
                ..
            } => (*channels_in, *channels_out),
        }
    }

    /// Columns of the half plane that hold anything but zeros: `K` in 1D.
    pub(crate) fn columns(&self) -> usize {
        match self {
            Self::Signal(half) => half.modes(),
            Self::Image { plane, .. } => plane.columns(),
        }
    }

    /// What the stored bin `(u, v)` is.
    pub(crate) fn bin(&self, u: usize, v: usize) -> Bin {
        match self {
            Self::Signal(half) => half.bin(v),
            Self::Image { plane, .. } => plane.bin(u, v),
        }
    }

    /// Free real coordinates per channel pair.
    pub(crate) fn pair_coordinates(&self) -> usize {
        match self {
            Self::Signal(half) => half.coordinates(),
            Self::Image { plane, .. } => plane.coordinates(),
        }
    }
}

impl Operator {
    /// The circulant operator on signals.
    pub fn signal(half: HalfSpectrum) -> Self {
        Self::of(Layout::Signal(half))
    }

    /// A matrix of `channels_out x channels_in` circulant blocks: the operator on images of one row.
    ///
    /// ```
    /// use circulant::operator::{HalfSpectrum, Operator};
    ///
    /// let operator = Operator::blocks(&HalfSpectrum::new(8)?, 3, 2)?;
    /// assert_eq!((operator.input_len(), operator.output_len(), operator.coordinates()), (24, 16, 48));
    /// # Ok::<(), circulant::operator::KernelError>(())
    /// ```
    pub fn blocks(
        half: &HalfSpectrum,
        channels_in: usize,
        channels_out: usize,
    ) -> Result<Self, KernelError> {
        Self::image(HalfPlane::of_signal(half)?, channels_in, channels_out)
    }

    /// The BCCB operator on images.
    pub fn image(
        plane: HalfPlane,
        channels_in: usize,
        channels_out: usize,
    ) -> Result<Self, KernelError> {
        for (size, what) in [(channels_in, "C_in"), (channels_out, "C_out")] {
            if size == 0 {
                return Err(KernelError::ZeroSize { what });
            }
        }
        let (height, width) = (plane.height(), plane.width());
        volume("an input", &[channels_in, height, width])?;
        volume("an output", &[channels_out, height, width])?;
        volume("the filters", &[channels_in, channels_out, height, width])?;
        Ok(Self::of(Layout::Image {
            plane,
            channels_in,
            channels_out,
        }))
    }

    pub(crate) fn of(layout: Layout) -> Self {
        static KNOWN: OnceLock<Mutex<HashMap<Key, Arc<Description>>>> = OnceLock::new();
        let mut known = KNOWN
            .get_or_init(Mutex::default)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let description = known.entry(layout.key()).or_insert_with(|| {
            Arc::new(Description {
                layout,
                single: OnceLock::new(),
                double: OnceLock::new(),
                constants: Mutex::default(),
            })
        });
        Self {
            description: Arc::clone(description),
            activation: Activation::Identity,
        }
    }

    /// The same operator followed by `activation`.
    pub fn with_activation(&self, activation: Activation) -> Self {
        Self {
            description: Arc::clone(&self.description),
            activation,
        }
    }

    /// The layout of the spectrum.
    pub fn layout(&self) -> &Layout {
        &self.description.layout
    }

    /// What follows the bias.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Free real coordinates of one filter, `d_eff`.
    pub fn coordinates(&self) -> usize {
        let (channels_in, channels_out) = self.layout().channels();
        self.layout().pair_coordinates() * channels_in * channels_out
    }

    /// Numbers of one input, `C_in*H*W`.
    pub fn input_len(&self) -> usize {
        let (height, width) = self.layout().grid();
        self.layout().channels().0 * height * width
    }

    /// Numbers of one output, `C_out*H*W`.
    pub fn output_len(&self) -> usize {
        let (height, width) = self.layout().grid();
        self.layout().channels().1 * height * width
    }

    pub(crate) fn plans<T: Planned>(&self) -> &Plans<T> {
        T::cell(&self.description).get_or_init(|| self.layout().plans())
    }

    /// The constants of the composed operations, made on first use.
    pub(crate) fn constant<C: Any + Send + Sync>(
        &self,
        key: ConstantKey,
        make: impl FnOnce() -> C,
    ) -> Arc<C> {
        let mut constants = self
            .description
            .constants
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let constant = constants.entry(key).or_insert_with(|| Arc::new(make()));
        Arc::clone(constant)
            .downcast()
            .expect("the key holds the type of the backend")
    }
}

/// A number type with a place for its plans.
pub(crate) trait Planned: circulant_kernels::Real {
    fn cell(description: &Description) -> &OnceLock<Plans<Self>>;
}

impl Planned for f32 {
    fn cell(description: &Description) -> &OnceLock<Plans<Self>> {
        &description.single
    }
}

impl Planned for f64 {
    fn cell(description: &Description) -> &OnceLock<Plans<Self>> {
        &description.double
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_layouts_share_their_plans() {
        let half = || HalfSpectrum::with_modes(12, 4).expect("valid");
        let (a, b) = (Operator::signal(half()), Operator::signal(half()));
        assert!(Arc::ptr_eq(&a.description, &b.description));
        let other = Operator::signal(HalfSpectrum::new(12).expect("valid"));
        assert!(!Arc::ptr_eq(&a.description, &other.description));
        assert_eq!(a.coordinates(), 7);
    }

    #[test]
    fn no_channels_is_an_error() {
        let plane = HalfPlane::new(3, 4).expect("valid");
        assert!(Operator::image(plane.clone(), 0, 1).is_err());
        assert!(Operator::image(plane, 1, 0).is_err());
    }
}
