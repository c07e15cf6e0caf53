//! Mappers over the parameters of a network that have a posterior, and over those that have none.

use std::collections::BTreeSet;

use burn::module::{ModuleMapper, Param};
use burn::tensor::Tensor;

use super::network::{SiteDescription, layer_of};
use crate::nn::{to_host, with_values};
use crate::parameters::ParameterPath;

/// Multiplies what has no posterior in one layer, and notes the paths of all layers.
pub(super) struct Scale<'a> {
    pub(super) path: ParameterPath,
    pub(super) sites: &'a [SiteDescription],
    pub(super) visited: usize,
    pub(super) below: &'a str,
    pub(super) factor: f64,
    pub(super) known: BTreeSet<String>,
}

impl ModuleMapper for Scale<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let position = self.visited;
        self.visited += 1;
        let path = self.path.name();
        self.known.insert(layer_of(&path).to_owned());
        let has_posterior = self.sites.iter().any(|site| site.position == position);
        if has_posterior || layer_of(&path) != self.below {
            return param;
        }
        let values = to_host(param.val()).into_iter();
        with_values(&param, values.map(|value| value * self.factor).collect())
    }
}

/// Puts values, or empty tensors, in the place of the parameters of the sites.
pub(super) struct Replace<'a> {
    visited: usize,
    sites: std::iter::Peekable<std::slice::Iter<'a, SiteDescription>>,
    values: Option<std::vec::IntoIter<Tensor<1>>>,
    /// Whether the values begin a tape.
    pub(super) leaves: bool,
}

impl<'a> Replace<'a> {
    pub(super) fn new(sites: &'a [SiteDescription], values: Option<Vec<Tensor<1>>>) -> Self {
        Self {
            visited: 0,
            sites: sites.iter().peekable(),
            values: values.map(Vec::into_iter),
            leaves: false,
        }
    }
}

impl ModuleMapper for Replace<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let position = self.visited;
        self.visited += 1;
        let Some(site) = self.sites.next_if(|site| site.position == position) else {
            return param;
        };
        match &mut self.values {
            None => param.map(|old| Tensor::empty([0; D], &old.device())),
            Some(values) => {
                let value = values.next().expect("one value per site");
                let value = match D {
                    // The same tensor: a reshape would be recorded for the backward pass.
                    1 => Tensor::from_dispatch(value.into_dispatch()),
                    _ => value.reshape(site.shape.clone()),
                };
                let value = if self.leaves {
                    Tensor::from_inner(value).require_grad()
                } else {
                    value
                };
                // Not a new parameter: it must stay as trainable as it was.
                param.map(|_| value)
            }
        }
    }
}
