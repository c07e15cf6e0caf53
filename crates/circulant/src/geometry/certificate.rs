//! Radii inside which a network's decision cannot change: [`Certificate::paper`], [`Certificate::sqrt_two`] and
//! [`Certificate::last_layer`], in this order in section 8 of `docs/mathematics.md`.
//!
//! # The promise
//!
//! > The class that the f32 forward pass on the CPU gives to `x'` is `y`, for **every** f32 input `x'` with `norm(x' - x) <= r`, in every batch
//! > whose inputs all have norms of at most `input_norm` ([`Certificate::input_norm`]).
//!
//! The batch matters because the kernels transform two inputs as one complex row: a huge neighbour brings its rounding errors along.
//! Model and inputs in anything but f32 are refused. The promise is as good as what is known about the activations:
//! [`Certificates::is_proven`].
//!
//! [`Target::True`] takes the margin of the true class, as the paper does: an input that is classified wrongly has radius 0.
//! [`Target::Predicted`] takes the class with the largest logit: the radius then says that the decision is stable, right or wrong.

use burn::config::Config;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Tensor};

use super::radii::{Margins, ModelLogits, Radii};
use super::rounding::Values;
use super::{GeometryError, Lipschitz, LowerBound, NetworkBound, UpperBound};
use crate::backend::fused::is_native;
use crate::nn::to_host;
use crate::parameters::ParameterPath;
use crate::task::Classifier;

/// The class that a certificate is about.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Target<'a> {
    /// The true class of every input.
    True(&'a [usize]),
    /// The class with the largest logit.
    Predicted,
}

/// How certificates are made.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::geometry::{CertificateConfig, Target};
/// use circulant::models::{HiddenKind, ImageClassifierConfig};
///
/// let device = circulant::cpu();
/// let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(&device);
/// let certificates = CertificateConfig::new().certify(&model, Tensor::<4>::ones([2, 1, 28, 28], &device), Target::Predicted)?;
/// let first = &certificates.inputs[0];
/// assert!(first.paper.get() <= first.sqrt_two.get());
/// // A label that is no class is an error.
/// let images = Tensor::<4>::ones([1, 1, 28, 28], &device);
/// assert!(CertificateConfig::new().certify(&model, images, Target::True(&[10])).is_err());
/// # Ok::<(), circulant::geometry::GeometryError>(())
/// ```
#[derive(Config, Debug)]
pub struct CertificateConfig {
    /// The largest norm of inputs in a batch, the perturbed ones included. Unless given, it is large enough for
    /// the inputs at hand and all radii around them (up to ten times the largest input).
    pub input_norm: Option<f64>,
    /// Inputs at a time.
    #[config(default = 256)]
    pub batch: usize,
    /// Inputs are put into so many groups by their norms, each with an `input_norm` of its own where none is given: small inputs then need not
    /// allow for the rounding errors of large neighbours, and are promised nothing beside such.
    #[config(default = 1)]
    pub bands: usize,
}

/// What is known about one input.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Certificate {
    /// The class that the radii are about.
    pub class: usize,
    /// The class with the largest f32 logit; the first of equals.
    pub predicted: usize,
    /// The margin of `class` in the f32 logits.
    pub margin: f64,
    /// The margin that is left in spite of rounding. If it is not positive, nothing is promised, not even for `x` itself.
    pub certified_margin: LowerBound,
    /// `m/(2 L)`.
    pub paper: LowerBound,
    /// `m/(sqrt(2) L)`.
    pub sqrt_two: LowerBound,
    /// The pairwise radius, if the last layer is dense.
    pub last_layer: Option<LowerBound>,
    /// The largest norm of an input in any batch for which the promise holds.
    pub input_norm: UpperBound,
}

impl Certificate {
    /// Whether the computed class is certain, at least at the input itself.
    pub fn is_certified(&self) -> bool {
        self.certified_margin.get() > 0.0
    }

    /// The largest of the radii; all of them are true.
    pub fn best(&self) -> LowerBound {
        self.last_layer
            .map_or(self.sqrt_two, |radius| radius.max(self.sqrt_two))
    }
}

/// The certificates of a batch of inputs and what they rest on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Certificates {
    /// One per input.
    pub inputs: Vec<Certificate>,
    /// The bounds of the network.
    pub network: NetworkBound,
    /// The largest [`Certificate::input_norm`].
    pub input_norm: UpperBound,
    /// `e`: how far f32 logits can be from exact ones, in the 2-norm, for inputs up to that norm.
    pub rounding: UpperBound,
}

impl Certificates {
    /// Whether every rounding error behind the radii is proven. With an activation whose f32 error was only sampled
    /// ([`LipschitzActivation::is_proven`](super::LipschitzActivation::is_proven)) the radii rest on these samples.
    pub fn is_proven(&self) -> bool {
        self.network.is_proven()
    }
}

impl CertificateConfig {
    /// Certifies a network of fixed values (a point estimate, a posterior mean, one posterior sample) at inputs `[n, ...]`.
    pub fn certify<const D: usize, M: Classifier<D> + Lipschitz>(
        &self,
        model: &M,
        inputs: Tensor<D>,
        target: Target<'_>,
    ) -> Result<Certificates, GeometryError> {
        let inputs = MeasuredInputs::new(inputs)?;
        self.certify_checked(model, &inputs, target)
    }

    pub(super) fn certify_checked<const D: usize, M: Classifier<D> + Lipschitz>(
        &self,
        model: &M,
        inputs: &MeasuredInputs<D>,
        target: Target<'_>,
    ) -> Result<Certificates, GeometryError> {
        NumberTypes::check(model)?;
        let network = model.network_bound()?;
        // Before the forward pass, which would panic where sizes do not fit.
        network.rounding_error_of(UpperBound::ZERO, Some(inputs.size))?;
        let logits = ModelLogits::new(&model.valid(), inputs, self.batch)?;
        let classes = logits.targets(target)?;
        let margins: Vec<Margins> = classes
            .iter()
            .enumerate()
            .map(|(input, &class)| logits.margins(input, class))
            .collect();
        let mut radii = Radii::new(&network, logits.classes)?;
        let given = match self.input_norm {
            Some(norm) => Some(checked_norm(norm, inputs, UpperBound::ZERO)?),
            None => None,
        };
        let mut order: Vec<usize> = (0..margins.len()).collect();
        order.sort_by(|&one, &other| {
            inputs.norms[one]
                .get()
                .total_cmp(&inputs.norms[other].get())
        });
        let bands = if given.is_some() { 1 } else { self.bands };
        let (mut all_norms, mut rounding) = (UpperBound::ZERO, UpperBound::ZERO);
        let mut certificates = Vec::with_capacity(margins.len());
        for band in order.chunks(order.len().div_ceil(bands.max(1)).max(1)) {
            radii.set_slack(UpperBound::ZERO, None);
            let input_norm = given.unwrap_or_else(|| {
                let norms = band.iter().map(|&input| inputs.norms[input]);
                let largest = norms.fold(UpperBound::ZERO, UpperBound::max);
                let farthest = band.iter().map(|&input| radii.farthest(&margins[input]));
                let farthest = farthest
                    .fold(0.0, f64::max)
                    .min(10.0 * (largest.get() + 1.0));
                largest + UpperBound::new(farthest)
            });
            let own = network.rounding_error_of(input_norm, Some(inputs.size))?;
            let read_out = network.read_out_rounding(Values::of_inputs(input_norm, inputs.size))?;
            radii.set_slack(own, read_out);
            for &input in band {
                let norm = inputs.norms[input];
                let room = (LowerBound::new(input_norm.get()) - norm).at_least_zero();
                let found = radii.certificate(&margins[input], room, input_norm);
                certificates.push((input, found));
            }
            all_norms = all_norms.max(input_norm);
            rounding = rounding.max(own);
        }
        certificates.sort_by_key(|(input, _)| *input);
        Ok(Certificates {
            inputs: certificates.into_iter().map(|(_, found)| found).collect(),
            input_norm: all_norms,
            rounding,
            network,
        })
    }
}

/// The largest norm of an input, if everything within `radius` of these inputs has no larger one.
pub(super) fn checked_norm<const D: usize>(
    norm: f64,
    inputs: &MeasuredInputs<D>,
    radius: UpperBound,
) -> Result<UpperBound, GeometryError> {
    if !(norm > 0.0 && norm.is_finite()) {
        return Err(GeometryError::Setting {
            what: "the largest input norm",
            expected: "positive and finite",
            got: norm,
        });
    }
    let reached = inputs.norms.iter().map(|input| *input + radius);
    match reached
        .enumerate()
        .find(|(_, reached)| reached.get() > norm)
    {
        None => Ok(UpperBound::new(norm)),
        Some((input, found)) => Err(GeometryError::InputNorm {
            input,
            norm: found.get(),
            limit: norm,
        }),
    }
}

/// Finds a parameter that is not in f32.
#[derive(Default)]
pub(super) struct NumberTypes {
    path: ParameterPath,
    other: Option<(String, DType)>,
}

impl NumberTypes {
    /// An error names it.
    pub(super) fn check(model: &impl Module) -> Result<(), GeometryError> {
        let mut types = Self::default();
        model.visit(&mut types);
        match types.other {
            None => Ok(()),
            Some((what, got)) => Err(GeometryError::NumberType { what, got }),
        }
    }
}

impl ModuleVisitor for NumberTypes {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let dtype = param.val().dtype();
        if dtype != DType::F32 && self.other.is_none() {
            self.other = Some((self.path.name(), dtype));
        }
    }
}

/// Inputs and their norms.
pub(super) struct MeasuredInputs<const D: usize> {
    pub(super) tensor: Tensor<D>,
    /// Numbers of one input.
    pub(super) size: usize,
    pub(super) norms: Vec<UpperBound>,
}

impl<const D: usize> MeasuredInputs<D> {
    pub(super) fn new(tensor: Tensor<D>) -> Result<Self, GeometryError> {
        let tensor = tensor.inner();
        if !is_native(&tensor.device()) {
            let got = format!("{:?}", tensor.device());
            return Err(GeometryError::Device { got });
        }
        if tensor.dtype() != DType::F32 {
            return Err(GeometryError::NumberType {
                what: "the inputs".to_owned(),
                got: tensor.dtype(),
            });
        }
        let count = tensor.dims()[0];
        if count == 0 || tensor.dims().contains(&0) {
            return Err(GeometryError::Shape {
                what: "the inputs",
                expected: "at least one input of at least one number".to_owned(),
                got: format!("the shape {:?}", tensor.dims()),
            });
        }
        let values = to_host(tensor.clone());
        let row = values.len() / count;
        if let Some(position) = values.iter().position(|value| !value.is_finite()) {
            return Err(GeometryError::NotFiniteInput {
                input: position / row,
                position: position % row,
            });
        }
        Ok(Self {
            tensor,
            size: row,
            norms: values.chunks_exact(row).map(UpperBound::norm).collect(),
        })
    }

    pub(super) fn largest(&self) -> UpperBound {
        self.norms
            .iter()
            .fold(UpperBound::ZERO, |largest, norm| largest.max(*norm))
    }
}
