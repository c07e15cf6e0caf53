//! Flags of networks that are trained for a radius.

use clap::Args;

use crate::experiments::certified::settings::CertifiedConfig;

/// What takes the place of the settings that were chosen for a data set.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Networks trained for a radius")]
pub struct CertifiedFlags {
    /// Channels of every stage, even numbers separated by commas; before each stage images are halved. Nothing is behind them unless
    /// --hidden-sizes says so.
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    widths: Vec<usize>,
    /// Convolutions per stage [default: 2].
    #[arg(long, value_name = "N")]
    stage_depth: Option<usize>,
    /// The side of the kernels, odd [default: 3].
    #[arg(long, value_name = "N")]
    kernel: Option<usize>,
    /// Sizes of the layers behind the convolutions, even numbers separated by commas.
    #[arg(long = "hidden-sizes", value_name = "N,...", value_delimiter = ',')]
    hidden: Vec<usize>,
    /// The length of the circulant blocks of these layers, 1 for dense ones [default: 1].
    #[arg(id = "hidden-block", long, value_name = "N")]
    block: Option<usize>,
    /// Images per step.
    #[arg(id = "step-images", long, value_name = "N")]
    batch: Option<usize>,
    /// The pixel that becomes zero, between 0 and 1: the nearer images are to it, the smaller are the rounding errors that certificates
    /// allow for [default: 0.5 for cifar10, else 0].
    #[arg(long, value_name = "X")]
    centre: Option<f32>,
    /// Times all training images are seen.
    #[arg(long, value_name = "N")]
    epochs: Option<u64>,
    /// The largest learning rate of Adan.
    #[arg(long, value_name = "X")]
    rate: Option<f64>,
    /// How far the right logit has to be ahead, in units of sqrt(2) times the radius.
    #[arg(long, value_name = "X")]
    offset: Option<f64>,
    /// The temperature of the loss, in units of the logits.
    #[arg(long, value_name = "X")]
    temperature: Option<f64>,
    /// Epochs of variational inference after training, for a distribution over networks [default: 1 in `reproduce certified`, else none].
    #[arg(long, value_name = "N")]
    bayesian_epochs: Option<u64>,
    /// Move training images by up to N pixels.
    #[arg(long, value_name = "N")]
    shift: Option<usize>,
    /// Mirror every second training image.
    #[arg(long)]
    flip: bool,
}

impl CertifiedFlags {
    /// Whether any of them is there, and which.
    pub fn given(&self) -> Option<&'static str> {
        [
            ("--widths", !self.widths.is_empty()),
            ("--stage-depth", self.stage_depth.is_some()),
            ("--kernel", self.kernel.is_some()),
            ("--hidden-sizes", !self.hidden.is_empty()),
            ("--hidden-block", self.block.is_some()),
            ("--step-images", self.batch.is_some()),
            ("--centre", self.centre.is_some()),
            ("--epochs", self.epochs.is_some()),
            ("--rate", self.rate.is_some()),
            ("--offset", self.offset.is_some()),
            ("--temperature", self.temperature.is_some()),
            ("--bayesian-epochs", self.bayesian_epochs.is_some()),
            ("--shift", self.shift.is_some()),
            ("--flip", self.flip),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }

    /// Flags that are given replace settings.
    pub fn apply(&self, config: &mut CertifiedConfig) {
        /// As the name says.
        fn replace<T: Copy>(place: &mut T, flag: Option<T>) {
            if let Some(value) = flag {
                *place = value;
            }
        }
        if !self.widths.is_empty() {
            config.model.widths.clone_from(&self.widths);
            config.model.hidden.clear();
        }
        if !self.hidden.is_empty() {
            config.model.hidden.clone_from(&self.hidden);
            config.model.block = 1;
        }
        replace(&mut config.data.centre, self.centre);
        let training = &mut config.certified;
        replace(&mut config.model.block, self.block);
        replace(&mut training.batch, self.batch);
        replace(&mut config.model.depth, self.stage_depth);
        replace(&mut config.model.kernel, self.kernel);
        replace(&mut training.epochs, self.epochs);
        replace(&mut training.learning_rate, self.rate);
        replace(&mut training.offset, self.offset);
        replace(&mut training.temperature, self.temperature);
        replace(&mut training.bayesian_epochs, self.bayesian_epochs);
        replace(&mut training.shift, self.shift);
        training.flip |= self.flip;
    }
}
