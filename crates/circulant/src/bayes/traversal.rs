//! How Burn walks through a Bayesian network: first the posteriors, each under the path of its parameter, then what is
//! left of the network itself.

use burn::module::{
    Content, Flag, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param,
};
use burn::tensor::{Bool, Device, Int, Tensor};

use super::network::{Bayesian, Network, SiteDescription};

/// What Burn calls the container that is entered.
const CONTAINER: &str = "Struct:Bayesian";

/// Passes over the float parameters that have a posterior.
struct Rest<'a, T> {
    inner: &'a mut T,
    sites: &'a [SiteDescription],
    visited: usize,
}

impl<'a, T> Rest<'a, T> {
    fn new(inner: &'a mut T, sites: &'a [SiteDescription]) -> Self {
        Self {
            inner,
            sites,
            visited: 0,
        }
    }

    /// Whether the next float parameter has a posterior.
    fn is_site(&mut self) -> bool {
        let position = self.visited;
        self.visited += 1;
        self.sites.iter().any(|site| site.position == position)
    }
}

impl<V: ModuleVisitor> ModuleVisitor for Rest<'_, V> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !self.is_site() {
            self.inner.visit_float(param);
        }
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.inner.visit_int(param);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.inner.visit_bool(param);
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.inner.visit_flag(flag);
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        self.inner.enter_module(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.inner.exit_module(name, container);
    }
}

impl<T: ModuleMapper> ModuleMapper for Rest<'_, T> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.is_site() {
            param
        } else {
            self.inner.map_float(param)
        }
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.inner.map_int(param)
    }

    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        self.inner.map_bool(param)
    }

    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.inner.map_flag(flag)
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        self.inner.enter_module(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.inner.exit_module(name, container);
    }
}

impl<M: Network> Module for Bayesian<M> {
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        for (site, factor) in self.sites.iter().zip(&self.factors) {
            visitor.enter_module(&site.path, CONTAINER);
            factor.visit(visitor);
            visitor.exit_module(&site.path, CONTAINER);
        }
        self.skeleton.visit(&mut Rest::new(visitor, &self.sites));
    }

    fn map<T: ModuleMapper>(self, mapper: &mut T) -> Self {
        let map = |(site, factor): (&SiteDescription, super::Factor)| {
            mapper.enter_module(&site.path, CONTAINER);
            let factor = factor.map(mapper);
            mapper.exit_module(&site.path, CONTAINER);
            factor
        };
        Self {
            factors: self.sites.iter().zip(self.factors).map(map).collect(),
            skeleton: self.skeleton.map(&mut Rest::new(mapper, &self.sites)),
            sites: self.sites,
        }
    }

    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.skeleton
            .collect_devices(self.factors.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        let forked = self.each(|model| model.fork(device), |factors| factors.fork(device));
        forked.with_priors_on(device)
    }

    fn to_device(self, device: &Device) -> Self {
        let moved = self.each(
            |model| model.to_device(device),
            |factors| factors.to_device(device),
        );
        moved.with_priors_on(device)
    }

    fn train(self) -> Self {
        self.each(M::train, Vec::train)
    }

    fn valid(&self) -> Self {
        self.clone()
            .each(|model| model.valid(), |factors| factors.valid())
    }

    fn materialize(self) -> Self {
        self.each(M::materialize, Vec::materialize)
    }
}

impl<M> Bayesian<M> {
    /// Priors are no parameters, but follow them.
    fn with_priors_on(mut self, device: &Device) -> Self {
        let moved = self.sites.iter().map(|site| SiteDescription {
            prior: site.prior.to_device(device),
            ..site.clone()
        });
        self.sites = moved.collect();
        self
    }

    fn each(
        self,
        skeleton: impl FnOnce(M) -> M,
        factors: impl FnOnce(Vec<super::Factor>) -> Vec<super::Factor>,
    ) -> Self {
        Self {
            skeleton: skeleton(self.skeleton),
            factors: factors(self.factors),
            sites: self.sites,
        }
    }
}

impl<M: Network> ModuleDisplayDefault for Bayesian<M> {
    fn content(&self, content: Content) -> Option<Content> {
        self.posteriors()
            .fold(content, |content, (path, factor)| content.add(path, factor))
            .set_top_level_type("Bayesian")
            .optional()
    }

    fn num_params(&self) -> usize {
        Module::num_params(self)
    }
}

impl<M: Network> ModuleDisplay for Bayesian<M> {}
