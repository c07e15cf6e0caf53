//! What layers offer in the same words, whatever their parameters are. A layer is a struct of a parameter (`coordinates` or
//! `filter`), a `bias` and a `map`; [`spectral_layer`] or [`spatial_layer`] says how its parameter becomes a spectrum, and
//! [`signal_layer`] or [`image_layer`] gives it everything that follows from that.

use burn::module::Param;
use burn::tensor::{DType, Device, Tensor};

use super::layer_map::LayerMap;

/// The numbers of a layer on the host, for what is computed outside a forward pass.
pub(crate) trait LayerValues {
    fn layer_map(&self) -> &LayerMap;

    fn bias_parameter(&self) -> Option<&Param<Tensor<1>>>;

    /// The number type of the parameters.
    fn dtype(&self) -> DType;

    fn device(&self) -> Device;

    /// The coordinates of the spectrum.
    fn host_coordinates(&self) -> Vec<f64>;

    /// The filters `[C_out, C_in, H, W]`.
    fn host_filters(&self) -> Vec<f64>;

    /// Whether the filters are the parameters.
    fn is_spatial(&self) -> bool {
        false
    }

    /// Free real numbers of the linear map.
    fn free_numbers(&self) -> usize {
        self.layer_map().operator().coordinates()
    }
}

/// A layer whose parameter is the coordinates; `flatten(0, 2)` if they are of rank 3.
macro_rules! spectral_layer {
    ($layer:ident $(, $flatten:ident($($axis:literal),*))?) => {
        impl crate::nn::LayerValues for $layer {
            fn layer_map(&self) -> &LayerMap {
                &self.map
            }

            fn bias_parameter(&self) -> Option<&Param<Tensor<1>>> {
                self.bias.as_ref()
            }

            fn dtype(&self) -> burn::tensor::DType {
                self.coordinates.val().dtype()
            }

            fn device(&self) -> Device {
                self.coordinates.val().device()
            }

            fn host_coordinates(&self) -> Vec<f64> {
                crate::nn::to_host(self.coordinates.val())
            }

            fn host_filters(&self) -> Vec<f64> {
                self.map.filters(&self.host_coordinates())
            }
        }

        impl $layer {
            fn spectrum(&self) -> Tensor<1> {
                self.coordinates.val()$(.$flatten($($axis),*))?
            }

            /// What a prior over the coordinates has to know.
            pub fn spectrum_layout(&self) -> crate::operator::Layout {
                self.map.operator().layout().clone()
            }
        }
    };
}

/// A layer whose `spectrum` is made of other parameters, such that its norm is one.
macro_rules! orthogonal_layer {
    ($layer:ident, $parameter:ident) => {
        impl crate::nn::LayerValues for $layer {
            fn layer_map(&self) -> &LayerMap {
                &self.map
            }

            fn bias_parameter(&self) -> Option<&Param<Tensor<1>>> {
                self.bias.as_ref()
            }

            fn dtype(&self) -> burn::tensor::DType {
                self.$parameter.val().dtype()
            }

            fn device(&self) -> Device {
                self.$parameter.val().device()
            }

            // Those that the forward pass uses, its rounding included.
            fn host_coordinates(&self) -> Vec<f64> {
                crate::nn::to_host(self.spectrum())
            }

            fn host_filters(&self) -> Vec<f64> {
                self.map.filters(&self.host_coordinates())
            }

            fn free_numbers(&self) -> usize {
                self.$parameter.shape().num_elements()
            }
        }
    };
}

/// A layer whose parameter is the filter, which `analyse` turns into coordinates.
macro_rules! spatial_layer {
    ($layer:ident, $analyse:path $(, $flatten:ident($($axis:literal),*))?) => {
        impl crate::nn::LayerValues for $layer {
            fn layer_map(&self) -> &LayerMap {
                &self.map
            }

            fn bias_parameter(&self) -> Option<&Param<Tensor<1>>> {
                self.bias.as_ref()
            }

            fn dtype(&self) -> burn::tensor::DType {
                self.filter.val().dtype()
            }

            fn device(&self) -> Device {
                self.filter.val().device()
            }

            fn host_coordinates(&self) -> Vec<f64> {
                self.map.coordinates(&self.host_filters())
            }

            fn host_filters(&self) -> Vec<f64> {
                crate::nn::to_host(self.filter.val())
            }

            fn is_spatial(&self) -> bool {
                true
            }
        }

        impl $layer {
            fn spectrum(&self) -> Tensor<1> {
                $analyse(self.filter.val(), self.map.operator())$(.$flatten($($axis),*))?
            }
        }
    };
}

/// What does not depend on the rank of the input.
macro_rules! any_layer {
    ($layer:ident, $rank:literal, $bins:literal, $norm:literal, $flatten:expr, $flatten_members:expr) => {
        impl $layer {
            /// Free real numbers of the linear map, without the bias.
            pub fn degrees_of_freedom(&self) -> usize {
                crate::nn::LayerValues::free_numbers(self)
            }

            #[doc = $bins]
            pub fn half_spectrum(&self) -> Vec<crate::operator::Complex<f64>> {
                self.map
                    .half_spectrum(&crate::nn::LayerValues::host_coordinates(self))
            }

            /// The matrix of the layer as `[inputs, outputs]`, so that `forward(x) = x.matmul(matrix) + bias` for rows `x`.
            pub fn dense_matrix(&self) -> Tensor<2> {
                use crate::nn::LayerValues;
                self.map.dense_matrix(&self.host_filters(), &self.device())
            }

            #[doc = $norm]
            pub fn operator_norm(&self) -> f64 {
                self.map
                    .operator_norm(&crate::nn::LayerValues::host_coordinates(self))
            }
        }

        impl crate::nn::CirculantLayer<$rank> for $layer {
            fn exact_operator(&self) -> Option<&crate::operator::Operator> {
                self.map.exact_operator()
            }

            fn spectrum_coordinates(&self) -> Tensor<1> {
                self.spectrum()
            }

            fn bias(&self) -> Option<Tensor<1>> {
                let bias = self.bias.as_ref()?;
                Some(self.map.operator_bias(bias.val()))
            }

            fn features(
                &self,
                input: Tensor<$rank>,
                activation: crate::operator::Activation,
            ) -> Tensor<2> {
                $flatten(self.apply(input, activation))
            }

            fn features_of_members(
                members: &[&Self],
                activation: crate::operator::Activation,
            ) -> Box<dyn Fn(Tensor<$rank>) -> Tensor<3> + Send> {
                let ensemble = Self::ensemble(members, activation);
                Box::new(move |input| $flatten_members(ensemble(input)))
            }
        }
    };
}

/// A layer over the last axis, and the numbers that its display shows.
macro_rules! signal_layer {
    ($layer:ident, $bins:literal, $norm:literal, [$($shown:ident),*]) => {
        impl $layer {
            /// Applies the layer over the last axis.
            ///
            /// # Shapes
            ///
            /// - input: `[..., d_in]`
            /// - output: `[..., d_out]`
            ///
            /// # Panics
            ///
            /// Panics if the last axis of `input` is not `d_in`.
            pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
                self.apply(input, crate::operator::Activation::Identity)
            }

            /// `tanh(forward(input))` in one pass: several times faster than Burn's `tanh` after
            /// [`Self::forward`].
            ///
            /// # Shapes
            ///
            /// - input: `[..., d_in]`
            /// - output: `[..., d_out]`
            ///
            /// # Panics
            ///
            /// Panics if the last axis of `input` is not `d_in`.
            pub fn forward_tanh<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
                self.apply(input, crate::operator::Activation::Tanh)
            }

            fn apply<const D: usize>(
                &self,
                input: Tensor<D>,
                activation: crate::operator::Activation,
            ) -> Tensor<D> {
                let bias = self.bias.as_ref().map(Param::val);
                self.map.apply(input, self.spectrum(), bias, activation)
            }

            /// Several layers that differ in their values only (posterior samples) as one map, which transforms its input once.
            ///
            /// # Shapes
            ///
            /// - input: `[batch, d_in]`
            /// - output: `[members, batch, d_out]`
            ///
            /// # Panics
            ///
            /// Panics if there are no members; the map panics if the last axis of its input is not `d_in`.
            pub fn ensemble(
                members: &[&Self],
                activation: crate::operator::Activation,
            ) -> impl Fn(Tensor<2>) -> Tensor<3> + use<> {
                let map = members.first().expect("at least one member").map.clone();
                let coordinates = crate::nn::stacked(members, Self::spectrum);
                let bias = crate::nn::stacked_bias(members, |member| member.bias.as_ref());
                move |input| map.apply_members(input, coordinates.clone(), bias.clone(), activation)
            }

            /// The size of the input.
            pub fn d_in(&self) -> usize {
                self.map.d_in
            }

            /// The size of the output.
            pub fn d_out(&self) -> usize {
                self.map.d_out
            }
        }

        crate::nn::layers::any_layer!($layer, 2, $bins, $norm, |y| y, |y| y);

        impl burn::module::ModuleDisplay for $layer {
            fn custom_settings(&self) -> Option<burn::module::DisplaySettings> {
                crate::nn::layers::one_line()
            }

            fn custom_content(&self, content: burn::module::Content) -> Option<burn::module::Content> {
                let bias = crate::nn::bias::name(self.bias.as_ref());
                content
                    .add("d_in", &self.d_in())
                    .add("d_out", &self.d_out())
                    $(.add(stringify!($shown), &self.$shown()))*
                    .add("degrees_of_freedom", &self.degrees_of_freedom())
                    .add("bias", &bias)
                    .optional()
            }
        }
    };
}

/// A layer on images, and the numbers that its display shows.
macro_rules! image_layer {
    ($layer:ident, $bins:literal, $norm:literal, [$($shown:literal: $value:expr),*]) => {
        impl $layer {
            /// Applies the layer.
            ///
            /// # Shapes
            ///
            /// - input: `[batch, C_in, H, W]`
            /// - output: `[batch, C_out, H, W]`
            ///
            /// # Panics
            ///
            /// Panics if the channels or the grid of `input` differ from those of the layer.
            pub fn forward(&self, input: Tensor<4>) -> Tensor<4> {
                self.apply(input, crate::operator::Activation::Identity)
            }

            /// `tanh(forward(input))` in one pass.
            ///
            /// # Shapes
            ///
            /// - input: `[batch, C_in, H, W]`
            /// - output: `[batch, C_out, H, W]`
            ///
            /// # Panics
            ///
            /// Panics if the channels or the grid of `input` differ from those of the layer.
            pub fn forward_tanh(&self, input: Tensor<4>) -> Tensor<4> {
                self.apply(input, crate::operator::Activation::Tanh)
            }

            fn apply(
                &self,
                input: Tensor<4>,
                activation: crate::operator::Activation,
            ) -> Tensor<4> {
                let bias = self.bias.as_ref().map(Param::val);
                self.map.apply_images(input, self.spectrum(), bias, activation)
            }

            /// Several layers that differ in their values only (posterior samples) as one map, which transforms its input once.
            ///
            /// # Shapes
            ///
            /// - input: `[batch, C_in, H, W]`
            /// - output: `[members, batch, C_out, H, W]`
            ///
            /// # Panics
            ///
            /// Panics if there are no members; the map panics if its input does not fit them.
            pub fn ensemble(
                members: &[&Self],
                activation: crate::operator::Activation,
            ) -> impl Fn(Tensor<4>) -> Tensor<5> + use<> {
                let map = members.first().expect("at least one member").map.clone();
                let coordinates = crate::nn::stacked(members, Self::spectrum);
                let bias = crate::nn::stacked_bias(members, |member| member.bias.as_ref());
                move |input| {
                    map.apply_images_members(input, coordinates.clone(), bias.clone(), activation)
                }
            }

            /// The number of channels, `[C_in, C_out]`.
            pub fn channels(&self) -> [usize; 2] {
                self.map.channels()
            }

            /// The size of the images, `[H, W]`.
            pub fn grid(&self) -> [usize; 2] {
                self.map.grid()
            }
        }

        crate::nn::layers::any_layer!(
            $layer,
            4,
            $bins,
            $norm,
            |y: Tensor<4>| y.flatten(1, 3),
            |y: Tensor<5>| y.flatten(2, 4)
        );

        impl burn::module::ModuleDisplay for $layer {
            fn custom_settings(&self) -> Option<burn::module::DisplaySettings> {
                crate::nn::layers::one_line()
            }

            fn custom_content(&self, content: burn::module::Content) -> Option<burn::module::Content> {
                content
                    .add_debug_attribute("channels", &self.channels())
                    .add_debug_attribute("grid", &self.grid())
                    $(.add($shown, &$value(self)))*
                    .add("degrees_of_freedom", &self.degrees_of_freedom())
                    .add("bias", &self.bias.is_some())
                    .optional()
            }
        }
    };
}

pub(super) use {
    any_layer, image_layer, orthogonal_layer, signal_layer, spatial_layer, spectral_layer,
};

/// How layers are displayed.
pub(super) fn one_line() -> Option<burn::module::DisplaySettings> {
    burn::module::DisplaySettings::new()
        .with_new_line_after_attribute(false)
        .optional()
}
