//! Flags that several commands share.

use std::error::Error;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
use burn::tensor::Device;
use circulant::device::DeviceName;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::reading::parse_size;
use circulant_data::encode::{ChannelOrder, Preprocessing};
use circulant_data::fetch::FetchOptions;
use circulant_data::{Cache, Split};

/// A flag whose values have names: the data crate has no flags of its own.
fn one_of<T, const N: usize>(names: [&'static str; N]) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: Error + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// A part of a data set.
pub(super) fn split() -> impl TypedValueParser<Value = Split> {
    one_of(Split::ALL.map(Split::name))
}

/// Where a model predicts.
#[derive(Debug, Clone, Default, Args)]
pub struct OnDevice {
    /// Predict on flex, the processor with the native kernels, or on a device that this program was built with (as `train --device`)
    /// [default: flex].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

impl OnDevice {
    /// The device, if it is not the processor.
    pub fn open(&self) -> anyhow::Result<Option<Device>> {
        let Some(text) = &self.device else {
            return Ok(None);
        };
        let name: DeviceName = text.parse().context("--device")?;
        let device = name.open().context("--device")?;
        Ok((!name.is_native()).then_some(device))
    }
}

/// Where data sets come from.
#[derive(Debug, Clone, Default, Args)]
pub struct Fetching {
    /// A folder that may have the files of the data sets.
    #[arg(long, env = "CIRCULANT_DATA", value_name = "FOLDER")]
    from: Option<PathBuf>,
    /// Fetch nothing over the network.
    #[arg(long)]
    offline: bool,
}

impl Fetching {
    /// With the cache of this user.
    pub fn options(&self) -> anyhow::Result<FetchOptions> {
        let mut options = FetchOptions::new(Cache::from_environment()?);
        options.from.clone_from(&self.from);
        options.network = !self.offline;
        Ok(options)
    }
}

/// What an encoder wants done to images.
#[derive(Debug, Clone, Default, Args)]
pub struct Preparing {
    /// Scale images to what the encoder wants, by cubic convolution.
    #[arg(long, value_name = "HEIGHTxWIDTH", value_parser = parse_size)]
    resize: Option<[usize; 2]>,
    /// Subtract from red, green and blue.
    #[arg(
        long,
        value_name = "R,G,B",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    mean: Vec<f32>,
    /// Divide red, green and blue by, after that.
    #[arg(long, value_name = "R,G,B", value_delimiter = ',')]
    std: Vec<f32>,
    /// The order in which the encoder wants the channels.
    #[arg(long, value_parser = one_of::<ChannelOrder, 2>(ChannelOrder::ALL.map(ChannelOrder::name)), default_value_t = ChannelOrder::Rgb)]
    order: ChannelOrder,
}

impl Preparing {
    /// The same for the encoder.
    pub fn preprocessing(&self) -> Preprocessing {
        Preprocessing {
            resize: self.resize,
            mean: self.mean.clone(),
            std: self.std.clone(),
            order: self.order,
        }
    }
}
