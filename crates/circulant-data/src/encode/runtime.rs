//! The library that runs ONNX files, behind one small interface. It may panic on files that it does not
//! expect, so every call is caught.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call did not do, as text.
type Reason = String;

/// The output of a network.
pub(super) struct Output {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// What a library does. A panic of its code is a reason like any other.
fn caught<T>(call: impl FnOnce() -> Result<T, Reason>) -> Result<T, Reason> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!(
            "a file that the ONNX library cannot handle ({})",
            text.unwrap_or("it panicked")
        ))
    })
}

#[cfg(feature = "encoder")]
mod library {
    use std::sync::Arc;

    use tract_onnx::prelude::{
        DatumExt, Framework, InferenceModelExt, IntoRunnable, Tensor, TypedRunnableModel, tvec,
    };

    use super::{Output, Reason, caught};

    /// A network that is ready for inputs of one shape.
    pub struct Runtime {
        plan: Arc<TypedRunnableModel>,
        shape: [usize; 4],
    }

    impl Runtime {
        pub fn load(bytes: &[u8], shape: [usize; 4]) -> Result<Self, Reason> {
            caught(|| {
                let plan = tract_onnx::onnx()
                    .model_for_read(&mut &*bytes)
                    .and_then(|model| model.with_input_fact(0, f32::fact(shape).into()))
                    .and_then(|model| model.into_optimized())
                    .and_then(|model| model.into_runnable())
                    .map_err(|error| format!("{error:#}"))?;
                Ok(Self { plan, shape })
            })
        }

        pub fn run(&self, values: &[f32]) -> Result<Output, Reason> {
            caught(|| {
                let run = || {
                    let input = Tensor::from_shape(&self.shape, values)?;
                    let output = self.plan.run(tvec!(input.into()))?;
                    let output = output[0].to_plain_array_view::<f32>()?;
                    Ok(Output {
                        shape: output.shape().to_vec(),
                        values: output.iter().copied().collect(),
                    })
                };
                run().map_err(|error: tract_onnx::prelude::TractError| format!("{error:#}"))
            })
        }
    }
}

#[cfg(not(feature = "encoder"))]
mod library {
    use super::{Output, Reason, caught};

    /// Nothing runs here.
    pub enum Runtime {}

    impl Runtime {
        pub fn load(_: &[u8], _: [usize; 4]) -> Result<Self, Reason> {
            caught(|| {
                Err("a build without the feature `encoder`, which runs ONNX files".to_owned())
            })
        }

        pub fn run(&self, _: &[f32]) -> Result<Output, Reason> {
            match *self {}
        }
    }
}

pub(super) use library::Runtime;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_library_is_an_error() {
        let reason = caught::<()>(|| panic!("index {} out of range", 7)).unwrap_err();
        assert!(reason.contains("index 7 out of range"), "{reason}");
        assert!(caught(|| Ok(())).is_ok());
    }
}
