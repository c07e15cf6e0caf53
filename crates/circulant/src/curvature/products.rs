//! Products of the Hessian and of the Gauss-Newton matrix with vectors.

use burn::module::Module;

use super::eigen::{self, Eigenvalue, EigenvalueConfig, Extreme};
use super::objective::{pull_back, softmax};
use super::parameters::{Parameters, in_double};
use super::step::Stencil;
use super::{CurvatureError, Objective, Subspace};

/// Two evaluations of a deterministic objective may differ by this much, relatively: sums in another order.
const REPEATABLE: f64 = 1e-12;

/// Which matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurvatureMatrix {
    /// The Hessian of the objective.
    Hessian,
    /// `J^t H J`, with the Jacobian `J` of the logits and the Hessian `H` of the cross-entropy by the logits: positive
    /// semi-definite.
    GaussNewton,
}

/// The curvature of an objective at the parameters of a module, over a subspace.
///
/// Vectors have one number per number of the subspace, in the order of [`Self::paths`]; tensors are row-major.
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::tensor::{DType, Tensor};
/// use circulant::curvature::{Curvature, EigenvalueConfig, Objective, CurvatureMatrix, Subspace};
///
/// let device = circulant::cpu().autodiff();
/// let model = LinearConfig::new(2, 3).init(&device);
/// let inputs = Tensor::<2>::from_data([[0.5, 1.0], [-1.0, 0.25]], (&device, DType::F64));
/// let objective = Objective::cross_entropy([0, 2], |model: &burn::nn::Linear, examples| {
///     model.forward(inputs.clone().slice(examples))
/// });
/// let curvature = Curvature::new(model, objective, &Subspace::named(["weight"]))?;
/// assert_eq!(curvature.dimension(), 6);
/// let largest = curvature.dominant_eigenvalue(CurvatureMatrix::GaussNewton, &EigenvalueConfig::default())?;
/// assert!(largest.converged && largest.value > 0.0);
/// # Ok::<(), circulant::curvature::CurvatureError>(())
/// ```
#[derive(Debug)]
pub struct Curvature<'a, M> {
    /// In f64, as in evaluation, without gradients.
    module: M,
    objective: Objective<'a, M>,
    parameters: Parameters,
    stencil: Stencil,
}

impl<'a, M: Module> Curvature<'a, M> {
    /// Takes the parameters of `module` in f64 and as in evaluation: dropout that follows Burn's training flags is off.
    /// The module and the tensors that the objective holds must be on an autodiff device, the latter in f64.
    pub fn new(
        module: M,
        objective: Objective<'a, M>,
        subspace: &Subspace,
    ) -> Result<Self, CurvatureError> {
        let parameters = Parameters::of(&module, subspace)?;
        let curvature = Self {
            module: in_double(module.freeze()),
            objective,
            parameters,
            stencil: Stencil::default(),
        };
        let (first, second) = (curvature.loss()?, curvature.loss()?);
        if (first - second).abs() > REPEATABLE * first.abs().max(second.abs()) {
            return Err(CurvatureError::Random { first, second });
        }
        Ok(curvature)
    }

    /// Another stencil for the differences.
    pub fn with_stencil(mut self, stencil: Stencil) -> Self {
        self.stencil = stencil;
        self
    }

    /// The number of values of the subspace.
    pub fn dimension(&self) -> usize {
        self.parameters.values.len()
    }

    /// The parameters of the subspace and the range that each has in a vector.
    pub fn paths(&self) -> impl Iterator<Item = (&str, std::ops::Range<usize>)> {
        let parameters = self.parameters.list.iter();
        parameters.map(|parameter| (parameter.path.as_str(), parameter.range.clone()))
    }

    /// The values of the subspace.
    pub fn parameters(&self) -> &[f64] {
        &self.parameters.values
    }

    /// The objective.
    pub fn loss(&self) -> Result<f64, CurvatureError> {
        let values = &self.parameters.values;
        let module = self.parameters.put(&self.module, values, false);
        self.objective.value(&module)
    }

    /// The exact gradient of the objective.
    pub fn gradient(&self) -> Result<Vec<f64>, CurvatureError> {
        self.gradient_at(&self.parameters.values)
    }

    /// `H v`, by differences of exact gradients along `v`. The error is that of [`Stencil`].
    pub fn hessian_vector(&self, v: &[f64]) -> Result<Vec<f64>, CurvatureError> {
        self.check(v)?;
        let mut product = vec![0.0; v.len()];
        let Some(step) = self.stencil.step(&self.parameters, v) else {
            return Ok(product);
        };
        for (displacement, weight) in self.stencil.points() {
            let gradient = self.gradient_at(&self.moved(v, displacement * step))?;
            accumulate(&mut product, weight / step, &gradient);
        }
        Ok(product)
    }

    /// `J^t H J v`: the logits are differenced along `v`, the Hessian `(diag(p) - p p^t)/N` of the mean cross-entropy by the
    /// logits is exact (and does not depend on the labels), and so is the product with `J^t`.
    pub fn gauss_newton_vector(&self, v: &[f64]) -> Result<Vec<f64>, CurvatureError> {
        let (count, ranges) = self.objective.chunks()?;
        self.check(v)?;
        let mut product = vec![0.0; v.len()];
        let Some(step) = self.stencil.step(&self.parameters, v) else {
            return Ok(product);
        };
        let points = self.stencil.points().iter();
        let moved: Vec<(M, f64)> = points
            .map(|(displacement, weight)| {
                let values = self.moved(v, displacement * step);
                let module = self.parameters.put(&self.module, &values, false);
                (module, weight / step)
            })
            .collect();
        let values = &self.parameters.values;
        let centre = self.parameters.put(&self.module, values, true);
        for range in ranges {
            let logits = self.objective.logits(&centre, range.clone())?;
            let mut slope = vec![0.0; logits.values.len()];
            for (module, weight) in &moved {
                let there = self.objective.logits(module, range.clone())?;
                accumulate(&mut slope, *weight, &there.values);
            }
            let rows = logits.values.chunks_exact(logits.classes);
            for (row, slope) in rows.zip(slope.chunks_exact_mut(logits.classes)) {
                let p = softmax(row);
                let mean: f64 = p.iter().zip(slope.iter()).map(|(p, s)| p * s).sum();
                let both = slope.iter_mut().zip(p);
                both.for_each(|(s, p)| *s = p * (*s - mean) / count as f64);
            }
            pull_back(&logits, slope, &centre, &self.parameters, &mut product)?;
        }
        Ok(product)
    }

    /// The product with either matrix.
    pub fn product(
        &self,
        operator: CurvatureMatrix,
        v: &[f64],
    ) -> Result<Vec<f64>, CurvatureError> {
        match operator {
            CurvatureMatrix::Hessian => self.hessian_vector(v),
            CurvatureMatrix::GaussNewton => self.gauss_newton_vector(v),
        }
    }

    /// The eigenvalue of largest magnitude of the Hessian, with its sign, or the largest of the Gauss-Newton matrix.
    pub fn dominant_eigenvalue(
        &self,
        operator: CurvatureMatrix,
        config: &EigenvalueConfig,
    ) -> Result<Eigenvalue, CurvatureError> {
        self.dominant_eigenvalue_with_progress(operator, config, |_| {})
    }

    /// The same; `progress` hears the number of products after each of them.
    pub fn dominant_eigenvalue_with_progress(
        &self,
        operator: CurvatureMatrix,
        config: &EigenvalueConfig,
        mut progress: impl FnMut(usize),
    ) -> Result<Eigenvalue, CurvatureError> {
        let mut products = 0;
        let extreme = match operator {
            CurvatureMatrix::Hessian => Extreme::Magnitude,
            CurvatureMatrix::GaussNewton => Extreme::Largest,
        };
        eigen::dominant(self.dimension(), extreme, config, |v| {
            let product = self.product(operator, v)?;
            products += 1;
            progress(products);
            Ok(product)
        })
    }

    fn gradient_at(&self, values: &[f64]) -> Result<Vec<f64>, CurvatureError> {
        let module = self.parameters.put(&self.module, values, true);
        self.objective.gradient(&module, &self.parameters)
    }

    fn moved(&self, v: &[f64], step: f64) -> Vec<f64> {
        let values = self.parameters.values.iter().zip(v);
        values.map(|(value, v)| value + step * v).collect()
    }

    fn check(&self, v: &[f64]) -> Result<(), CurvatureError> {
        if v.len() != self.dimension() {
            return Err(CurvatureError::Shape {
                what: "the length of the vector",
                expected: format!("{}, the dimension of the subspace", self.dimension()),
                got: v.len().to_string(),
            });
        }
        if v.iter().all(|v| v.is_finite()) {
            return Ok(());
        }
        Err(CurvatureError::NotFinite {
            what: "a number of the vector".into(),
        })
    }
}

fn accumulate(sum: &mut [f64], weight: f64, values: &[f64]) {
    let both = sum.iter_mut().zip(values);
    both.for_each(|(sum, value)| *sum += weight * value);
}
