//! The memory of a composed layer, as the operating system counts it.

use std::fs;

use burn::module::Module;
use burn::tensor::Tensor;
use circulant::nn::SpectralCirculant1dConfig;

/// The most memory that this process ever had, in bytes, since it was asked the last time.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    let kibibytes: u64 = number.and_then(|n| n.parse().ok()).expect("a number");
    fs::write("/proc/self/clear_refs", "5").expect("Linux");
    1024 * kibibytes
}

/// In units of the input: of 784 and 512 values, by two stages, and of 509, by a chirp.
#[test]
#[ignore = "alone in its process: cargo test -p circulant --features ndarray --test backends -- --ignored --nocapture"]
fn memory_of_a_composed_layer() {
    const BATCH: usize = 16_384;
    let device = circulant::device::DeviceName {
        backend: circulant::device::BackendKind::NdArray,
        index: None,
    };
    let device = device.open().expect("compiled in").autodiff();
    for d in [784, 512, 509] {
        let layer = SpectralCirculant1dConfig::new(d).init(&circulant::cpu().autodiff());
        let layer = layer.fork(&device);
        let x = Tensor::<2>::ones([BATCH, d], &device).require_grad();
        // Constants are made once.
        layer.forward(x.clone().slice([0..1]));
        let unit = (4 * BATCH * d) as f64;
        peak();
        let before = peak();
        let y = layer.forward(x.clone());
        let forward = peak() - before;
        let gradients = y.sum().backward();
        let backward = peak() - before;
        assert!(x.grad(&gradients).is_some());
        println!(
            "d = {d}: forward {:.1}, forward and backward {:.1} times the input",
            forward as f64 / unit,
            backward as f64 / unit
        );
    }
}
