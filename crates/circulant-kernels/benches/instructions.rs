//! Three kernels for an instruction counter: `instructions CASE TIMES` does the work of a case so many times, on one thread.
//!
//! `python3 bench/instructions/check.py` runs this under callgrind and compares with the counts that are committed:
//! instructions repeat where times do not.

use circulant_kernels::{
    Activation, Attention, CirculantPlan, Dropout, Filters, Gradients, HalfPlane, HalfSpectrum,
    NoiseKey, QueryKeyValue,
};

fn numbers(seed: usize, count: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 2003) as f32 / 1001.5 - 1.0;
    (0..count).map(number).collect()
}

/// Forward with tanh, and all gradients.
fn layer(plan: CirculantPlan<f32>, rows: usize, biases: usize) -> Box<dyn FnMut()> {
    let (inputs, outputs) = (rows * plan.input_len(), rows * plan.output_len());
    let (x, grad) = (numbers(0, inputs), numbers(1, outputs));
    let (coordinates, bias) = (numbers(2, plan.coordinates()), numbers(3, biases));
    let [mut y, mut grad_x] = [outputs, inputs].map(|len| vec![0.0; len]);
    let (mut grad_coordinates, mut grad_bias) = (coordinates.clone(), bias.clone());
    Box::new(move || {
        let filters = Filters {
            coordinates: &coordinates,
            bias: Some(&bias),
            activation: Activation::Tanh,
        };
        let kept = plan
            .forward_keeping(&x, filters, &mut y)
            .expect("shapes fit");
        let gradients = Gradients {
            x: Some(&mut grad_x),
            coordinates: Some(&mut grad_coordinates),
            bias: Some(&mut grad_bias),
        };
        plan.backward(&kept, filters, &y, &grad, gradients)
            .expect("shapes fit");
    })
}

/// Forward and backward with dropout.
fn attention() -> Box<dyn FnMut()> {
    const LEN: usize = 2 * 65 * 128;
    let sizes = Attention::new(65, 4, 32).expect("positive");
    let key = NoiseKey { seed: 1, stream: 1 };
    let dropout = Some(Dropout::new(0.1, key).expect("a rate"));
    let [query, key, value, grad] = [0, 1, 2, 3].map(|seed| numbers(seed, LEN));
    let mut buffers = [0; 4].map(|_| vec![0.0; LEN]);
    let mut log_sums = vec![0.0; 2 * 4 * 65];
    Box::new(move || {
        let inputs = QueryKeyValue {
            query: &query[..],
            key: &key,
            value: &value,
        };
        let [y, of_query, of_key, of_value] = &mut buffers;
        sizes
            .forward(inputs, dropout, y, &mut log_sums)
            .expect("shapes fit");
        let gradients = QueryKeyValue {
            query: &mut of_query[..],
            key: of_key,
            value: of_value,
        };
        sizes
            .backward(inputs, dropout, &log_sums, &grad, gradients)
            .expect("shapes fit");
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, times] = &arguments[..] else {
        // `cargo bench` runs every benchmark; this one is for check.py.
        return;
    };
    circulant_kernels::join_pool(1).expect("nothing has used the pool yet");
    let mut work = match case.as_str() {
        "signal" => {
            let layout = HalfSpectrum::new(784).expect("positive");
            layer(CirculantPlan::new_1d(&layout), 64, 1)
        }
        "images" => {
            let layout = HalfPlane::new(28, 28).expect("positive");
            let plan = CirculantPlan::new_2d(&layout, 8, 8).expect("positive");
            layer(plan, 8, 8)
        }
        "attention" => attention(),
        other => panic!("expected signal, images or attention, got {other}"),
    };
    for _ in 0..times.parse().expect("a number of times") {
        work();
    }
}
