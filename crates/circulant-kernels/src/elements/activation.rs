//! What follows a layer.

/// What happens to the biased output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// Nothing.
    #[default]
    Identity,
    /// `tanh`, applied while the rows are still in registers.
    Tanh,
}
