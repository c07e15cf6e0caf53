//! Models for devices.

use circulant_edge::write::seal;
use circulant_edge::{Complex, Draws, Input, Model, Prediction, Runtime, Sampling};

/// Numbers of memory, and products of weights, up to which a model is also used.
const USED: usize = 1 << 12;

/// A `.circ` file as it is, and once more with length and checksum put right.
pub fn device(bytes: &[u8]) {
    used(bytes);
    let mut sealed = bytes.to_vec();
    seal(&mut sealed);
    used(&sealed);
}

fn used(bytes: &[u8]) {
    let Ok(model) = Model::read(bytes) else {
        return;
    };
    for output in 0..3 {
        let _ = model.name(output);
    }
    if model.memory_len() > USED || model.inputs() > USED || bytes.len() > USED {
        return;
    }
    let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
    let Ok(mut runtime) = Runtime::new(model, &mut memory) else {
        panic!("the memory is as large as the model says");
    };
    let input = vec![9; model.inputs()];
    for draws in [Draws::Sums, Draws::Weights] {
        let sampling = Sampling {
            samples: 1,
            seed: 0,
            draws,
            radius: true,
        };
        let _: Result<Prediction<'_, f32>, _> = runtime.predict(Input::Bytes(&input), &sampling);
    }
    let _ = runtime.predict_moments(Input::Bytes(&input));
}
