//! `circulant-edge` as WebAssembly: plain functions on memory that the page fills and reads.
//!
//! The page writes a model to `model()`, calls `load`, writes an input to `input()`, calls `predict`, and reads the answer
//! at `output()`: class, predictive entropy, expected entropy, radius (negative for none), class of the mean network; then
//! probabilities, their deviations and the logits of the mean network, one per class each.
//!
//! # Safety
//!
//! A page has one thread, and every function takes the statics for the time of its call, so there are never two references to
//! one of them at a time. The page writes between calls.
#![cfg_attr(target_arch = "wasm32", no_std)]

use core::cell::UnsafeCell;

use circulant_edge::{Complex, Draws, EdgeError, Input, Model, Prediction, Runtime, Sampling};

/// Bytes of a model at most.
const MODEL: usize = 1 << 18;
/// Values of an input at most.
const INPUT: usize = 1 << 14;
/// Values of an answer at most.
const OUTPUT: usize = 1 << 16;
/// Complex numbers of memory at most.
const MEMORY: usize = 1 << 16;

struct Static<T>(UnsafeCell<T>);

// SAFETY: a page has one thread.
unsafe impl<T> Sync for Static<T> {}

static MODEL_BYTES: Static<[u8; MODEL]> = Static(UnsafeCell::new([0; MODEL]));
static MODEL_LENGTH: Static<usize> = Static(UnsafeCell::new(0));
static INPUT_VALUES: Static<[f32; INPUT]> = Static(UnsafeCell::new([0.0; INPUT]));
static OUTPUT_VALUES: Static<[f32; OUTPUT]> = Static(UnsafeCell::new([0.0; OUTPUT]));
static MEMORY_VALUES: Static<[Complex<f32>; MEMORY]> =
    Static(UnsafeCell::new([Complex::new(0.0, 0.0); MEMORY]));

impl<T> Static<T> {
    /// The value, for the time of one call from the page.
    #[allow(clippy::mut_from_ref)]
    fn take(&self) -> &mut T {
        // SAFETY: see the head of this file.
        unsafe { &mut *self.0.get() }
    }
}

#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Where a model goes.
#[unsafe(no_mangle)]
pub extern "C" fn model() -> *mut u8 {
    MODEL_BYTES.0.get().cast()
}

/// Where an input goes: floats before normalisation, bytes divided by 255.
#[unsafe(no_mangle)]
pub extern "C" fn input() -> *mut f32 {
    INPUT_VALUES.0.get().cast()
}

/// Where answers are.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const f32 {
    OUTPUT_VALUES.0.get().cast()
}

/// Bytes of a model at most.
#[unsafe(no_mangle)]
pub extern "C" fn capacity() -> usize {
    MODEL
}

fn read() -> Option<Model<'static>> {
    let length = *MODEL_LENGTH.take();
    Model::read(&MODEL_BYTES.take()[..length]).ok()
}

/// Checks a model of so many bytes: the number of its outputs, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn load(length: usize) -> i32 {
    *MODEL_LENGTH.take() = 0;
    let Some(bytes) = MODEL_BYTES.take().get(..length) else {
        return -1;
    };
    match Model::read(bytes) {
        Ok(model) if model.inputs() <= INPUT && model.memory_len() <= MEMORY => {
            *MODEL_LENGTH.take() = length;
            model.outputs() as i32
        }
        _ => -1,
    }
}

/// Values of an input.
#[unsafe(no_mangle)]
pub extern "C" fn inputs() -> usize {
    read().map_or(0, |model| model.inputs())
}

/// Mean number `index` of the weights (0) or the bias (1) of a layer; NaN behind the last one.
#[unsafe(no_mangle)]
pub extern "C" fn means(layer: usize, part: usize) -> usize {
    let Some(model) = read() else { return 0 };
    let output = OUTPUT_VALUES.take();
    let mut count = 0;
    for slot in output.iter_mut() {
        let Some(value) = model.mean(layer, part, count) else {
            break;
        };
        *slot = value;
        count += 1;
    }
    count
}

/// Predicts from `samples` draws, or from moments if there are none: 0, or -1 for an error.
#[unsafe(no_mangle)]
pub extern "C" fn predict(samples: u32, seed: u32, weights: u32, radius: u32) -> i32 {
    let Some(model) = read() else { return -1 };
    let input = Input::Floats(&INPUT_VALUES.take()[..model.inputs()]);
    let outputs = model.outputs();
    let Ok(mut runtime) = Runtime::new(model, MEMORY_VALUES.take()) else {
        return -1;
    };
    let sampling = Sampling {
        samples,
        seed: seed.into(),
        draws: if weights == 0 {
            Draws::Sums
        } else {
            Draws::Weights
        },
        radius: radius != 0,
    };
    let prediction: Result<Prediction<'_, f32>, EdgeError> = if samples == 0 {
        runtime.predict_moments(input)
    } else {
        runtime.predict(input, &sampling)
    };
    let Ok(prediction) = prediction else { return -1 };
    let output = OUTPUT_VALUES.take();
    output[0] = prediction.class as f32;
    output[1] = prediction.predictive_entropy;
    output[2] = prediction.expected_entropy;
    let (radius, class) = match prediction.radius {
        Some(found) => (found.radius, found.class),
        None => (-1.0, prediction.class),
    };
    output[3] = radius;
    output[4] = class as f32;
    for k in 0..outputs {
        output[5 + k] = prediction.mean(k);
        output[5 + outputs + k] = prediction.deviation(k);
        output[5 + 2 * outputs + k] = prediction.mean_logit(k);
    }
    0
}
