//! Training within a set of allowed networks, e.g. those of bounded norms: a projection after every step.

use std::error::Error;

use super::network::Network;
use super::{BayesError, Svi};

/// What is done to the network after every step.
pub(super) type Constraint<M> = Box<dyn Fn(M) -> Result<M, Box<dyn Error + Send + Sync>> + Send>;

impl<M: Network> Svi<M> {
    /// Keeps the network in a set of allowed ones: `projection` is applied to the network at the posterior means now and after every
    /// step, and must be a function of its argument alone, so that a resumed run does the same.
    ///
    /// What is projected are the posterior *means*, and the parameters without a posterior. For a point estimate that is the
    /// network itself. Samples of a posterior with a spread may lie outside the set.
    ///
    /// ```
    /// use circulant::bayes::{BayesianConfig, Svi, SviConfig};
    /// use circulant::geometry::{Lipschitz, NormControl};
    /// use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};
    ///
    /// let device = circulant::cpu().autodiff();
    /// let config = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).with_image([1, 1, 16]);
    /// let head = config.with_classes(3).init(&device);
    /// let network = BayesianConfig::new().into_point_estimate().init(head)?;
    /// let svi = Svi::new(network, SviConfig::new(), 100)?.with_projection(|mut head: ImageClassifier| {
    ///     head.clip_norm(1.0)?;
    ///     Ok(head)
    /// })?;
    /// assert!(svi.network().mean().network_bound()?.upper().get() <= 1.0 + 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_projection(
        mut self,
        projection: impl Fn(M) -> Result<M, Box<dyn Error + Send + Sync>> + Send + 'static,
    ) -> Result<Self, BayesError> {
        self.projection = Some(Box::new(projection));
        self.project()?;
        Ok(self)
    }

    pub(super) fn has_projection(&self) -> bool {
        self.projection.is_some()
    }

    pub(super) fn project(&mut self) -> Result<(), BayesError> {
        let Some(projection) = &self.projection else {
            return Ok(());
        };
        let step = self.step;
        // A clone: after an error the network must still be there.
        let projected = self.network().clone().map_mean(projection);
        let projected = projected.map_err(|source| BayesError::Projection { step, source })?;
        self.set_network(projected);
        Ok(())
    }
}
