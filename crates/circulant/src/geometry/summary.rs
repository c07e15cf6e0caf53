//! Certificates and posterior geometry in a few figures.

use serde::Serialize;

use super::{Certificate, Certificates, Distribution, LowerBound, PosteriorGeometry};

/// A distribution in a few figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// 5 %.
    pub q05: f64,
    /// 25 %.
    pub q25: f64,
    /// 50 %.
    pub median: f64,
    /// 75 %.
    pub q75: f64,
    /// 95 %.
    pub q95: f64,
}

impl Quantiles {
    /// Of values in any order, at least one.
    ///
    /// # Panics
    ///
    /// Panics if there are none.
    pub fn of(values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "quantiles of no values");
        (&Distribution::new(values)).into()
    }
}

impl From<&Distribution> for Quantiles {
    fn from(distribution: &Distribution) -> Self {
        Self {
            mean: distribution.mean(),
            q05: distribution.quantile(0.05),
            q25: distribution.quantile(0.25),
            median: distribution.quantile(0.5),
            q75: distribution.quantile(0.75),
            q95: distribution.quantile(0.95),
        }
    }
}

/// A value for each of the three radii.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Radii<T> {
    /// `m/(2 L)`.
    pub paper: T,
    /// `m/(sqrt(2) L)`.
    pub sqrt_two: T,
    /// Pairs of columns of the last layer.
    pub last_layer: Option<T>,
}

impl<T> Radii<T> {
    /// Each of them through a function.
    pub fn map<U>(&self, f: impl Fn(&T) -> U) -> Radii<U> {
        Radii {
            paper: f(&self.paper),
            sqrt_two: f(&self.sqrt_two),
            last_layer: self.last_layer.as_ref().map(&f),
        }
    }
}

/// Shares of inputs at one radius.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CertifiedAt {
    /// The radius, in the 2-norm of the input as the network sees it.
    pub radius: f64,
    /// The shares.
    #[serde(flatten)]
    pub share: Radii<f64>,
}

impl Certificate {
    /// The three radii.
    pub fn radii(&self) -> Radii<f64> {
        Radii {
            paper: self.paper.get(),
            sqrt_two: self.sqrt_two.get(),
            last_layer: self.last_layer.map(LowerBound::get),
        }
    }
}

impl Certificates {
    /// How the radii are spread over the inputs.
    pub fn radii(&self) -> Radii<Quantiles> {
        over(&self.inputs, Quantiles::of)
    }

    /// The shares of all inputs that are certified at least this far: the certified accuracy, where the target is the true class.
    pub fn certified_at(&self, radius: f64) -> CertifiedAt {
        // A radius of 0 needs a certain class too; a wrong class has no positive margin.
        let inputs = self.inputs.iter();
        let certain: Vec<Certificate> = inputs.filter(|c| c.is_certified()).copied().collect();
        let share = |values: Vec<f64>| {
            let reached = values.iter().filter(|&&value| value >= radius).count();
            reached as f64 / self.inputs.len() as f64
        };
        CertifiedAt {
            radius,
            share: over(&certain, share),
        }
    }
}

impl PosteriorGeometry {
    /// How the radii are spread over all pairs of sample and input.
    pub fn radii(&self) -> Radii<Quantiles> {
        Radii {
            paper: (&self.paper).into(),
            sqrt_two: (&self.sqrt_two).into(),
            last_layer: self.last_layer.as_ref().map(Into::into),
        }
    }
}

/// A summary of each of the radii.
fn over<T>(inputs: &[Certificate], summary: impl Fn(Vec<f64>) -> T) -> Radii<T> {
    let radii: Vec<Radii<f64>> = inputs.iter().map(Certificate::radii).collect();
    let last: Option<Vec<f64>> = radii.iter().map(|radii| radii.last_layer).collect();
    Radii {
        paper: summary(radii.iter().map(|radii| radii.paper).collect()),
        sqrt_two: summary(radii.iter().map(|radii| radii.sqrt_two).collect()),
        last_layer: last.map(&summary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_values() {
        let found = Quantiles::of(vec![3.0, 1.0, 2.0, 5.0, 4.0]);
        assert_eq!((found.mean, found.q25, found.median), (3.0, 2.0, 3.0));
        assert_eq!((found.q75, found.q95), (4.0, 4.8));
    }
}
