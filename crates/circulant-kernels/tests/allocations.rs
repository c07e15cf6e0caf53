//! The operations of a transformer's training step allocate nothing once they are warm: scratch
//! memory comes from the crate's pool, and the work is split without lists of jobs.

#![allow(clippy::unwrap_used, reason = "parts of a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use circulant_kernels::{
    AdanSettings, Attention, Dropout, LayerNorm, LayerNormGradients, NoiseKey, QueryKeyValue,
    RowStatistics, adan_step, bias_gelu_dropout_backward, bias_gelu_dropout_into, dropout_into,
    layer_norm_backward, layer_norm_into,
};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator with a counter.
struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// 32 batch entries of 33 tokens.
const ROWS: usize = 32 * 33;
/// Two heads of 16.
const WIDTH: usize = 32;

/// Rounds that fill the pool of scratch memory.
const WARM_UP: usize = 100;
/// Rounds that are counted.
const ROUNDS: usize = 100;
/// Rounds in which a thread may need a buffer that no round before needed at the same time.
const LATE: usize = 2;

/// Every operation once, all on the same memory.
fn step(
    x: &[f32],
    outputs: &mut [Vec<f32>; 5],
    rows: &mut [Vec<f32>; 3],
    small: &mut [Vec<f32>; 2],
) {
    let parameters = &x[..WIDTH];
    let dropout = Dropout::new(0.1, NoiseKey { seed: 1, stream: 1 }).unwrap();
    let [a, b, c, d, e] = outputs.each_mut().map(|values| &mut values[..]);
    let [mean, inverse_deviation, log_sums] = rows.each_mut().map(|values| &mut values[..]);
    let [gamma, beta] = small.each_mut().map(|values| &mut values[..]);
    dropout_into(x, dropout, a).unwrap();
    bias_gelu_dropout_into(x, parameters, Some(dropout), a).unwrap();
    bias_gelu_dropout_backward(x, parameters, Some(dropout), x, a, gamma).unwrap();

    let layer = LayerNorm {
        gamma: parameters,
        beta: parameters,
        epsilon: 1e-5,
    };
    let statistics = RowStatistics {
        mean: &mut mean[..],
        inverse_deviation: &mut inverse_deviation[..],
    };
    layer_norm_into(x, layer, b, statistics).unwrap();
    let statistics = RowStatistics {
        mean: &*mean,
        inverse_deviation: &*inverse_deviation,
    };
    let gradients = LayerNormGradients { x: c, gamma, beta };
    layer_norm_backward(x, parameters, statistics, x, Some(x), gradients).unwrap();

    let sizes = Attention::new(33, 2, 16).unwrap();
    let inputs = QueryKeyValue {
        query: x,
        key: x,
        value: x,
    };
    sizes.forward(inputs, Some(dropout), a, log_sums).unwrap();
    let gradients = QueryKeyValue {
        query: &mut a[..],
        key: &mut b[..],
        value: &mut c[..],
    };
    sizes
        .backward(inputs, Some(dropout), log_sums, x, gradients)
        .unwrap();

    let settings = AdanSettings {
        learning_rate: 1e-3,
        beta_1: 0.98,
        beta_2: 0.92,
        beta_3: 0.99,
        epsilon: 1e-8,
        weight_decay: 0.0,
        decoupled: false,
        time: 2,
    };
    adan_step([x; 5], x, settings, [a, b, c, d, e]).unwrap();
}

#[test]
fn a_warm_step_allocates_nothing() {
    let x: Vec<f32> = (0..ROWS * WIDTH).map(|i| (i % 17) as f32 * 0.1).collect();
    let mut outputs = [(); 5].map(|()| x.clone());
    let mut rows = [ROWS, ROWS, 2 * ROWS].map(|len| vec![0.0; len]);
    let mut small = [(); 2].map(|()| vec![0.0; WIDTH]);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build()
        .unwrap();
    let rounds: Vec<usize> = pool.install(|| {
        let mut rounds = Vec::with_capacity(WARM_UP + ROUNDS);
        for _ in 0..WARM_UP + ROUNDS {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            step(&x, &mut outputs, &mut rows, &mut small);
            rounds.push(ALLOCATIONS.load(Ordering::Relaxed) - before);
        }
        rounds
    });
    let allocating = rounds[WARM_UP..].iter().filter(|&&count| count > 0).count();
    assert!(
        allocating <= LATE,
        "{allocating} of {ROUNDS} warm rounds allocated: {rounds:?}"
    );
}
