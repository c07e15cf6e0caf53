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

    use rten::{Model, RunOptions, ThreadPool};
    use rten_tensor::Tensor;
    use rten_tensor::prelude::Layout;

    use super::super::onnx;
    use super::{Output, Reason, caught};

    /// A network that is ready for inputs of one shape.
    pub struct Runtime {
        model: Model,
        shape: [usize; 4],
        options: RunOptions,
    }

    impl Runtime {
        pub fn load(bytes: Vec<u8>, shape: [usize; 4]) -> Result<Self, Reason> {
            caught(|| {
                let model =
                    Model::load(onnx::complete(bytes)).map_err(|error| error.to_string())?;
                // As many threads as everything else; its own choice is one per physical core.
                let pool = ThreadPool::with_num_threads(rayon::current_num_threads());
                let options = RunOptions::default().with_thread_pool(Some(Arc::new(pool)));
                Ok(Self {
                    model,
                    shape,
                    options,
                })
            })
        }

        pub fn run(&self, values: Vec<f32>) -> Result<Output, Reason> {
            caught(|| {
                let input = Tensor::from_data(&self.shape, values);
                let output = self.model.run_one(input.into(), Some(self.options.clone()));
                let output = output.map_err(|error| error.to_string())?;
                let output: Tensor<f32> = output
                    .try_into()
                    .map_err(|_| "an output that is not f32".to_owned())?;
                Ok(Output {
                    shape: output.shape().to_vec(),
                    values: output.into_data(),
                })
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
        pub fn load(_: Vec<u8>, _: [usize; 4]) -> Result<Self, Reason> {
            caught(|| {
                Err("a build without the feature `encoder`, which runs ONNX files".to_owned())
            })
        }

        pub fn run(&self, _: Vec<f32>) -> Result<Output, Reason> {
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
