//! Why the objective has stopped being finite, for the error that names it.

use burn::optim::GradientsParams;

use super::network::Network;
use super::{BayesError, Bayesian};
use crate::train::find_not_finite;

pub(super) fn diverged<M: Network>(
    network: &Bayesian<M>,
    gradients: &GradientsParams,
    step: u64,
) -> BayesError {
    let (what, parameter) = match find_not_finite(network, None) {
        Some(parameter) => ("a parameter", parameter),
        None => {
            let gradient = find_not_finite(network, Some(gradients));
            let inputs = "no parameter: look at the inputs and the likelihood".to_owned();
            ("the loss", gradient.unwrap_or(inputs))
        }
    };
    BayesError::Diverged {
        step,
        what,
        parameter,
    }
}
