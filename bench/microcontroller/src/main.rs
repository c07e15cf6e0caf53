//! Reads images of 784 bytes from `images.bin` of the host, predicts them, and writes per image its class, the probabilities,
//! the entropies (f32) and the SysTick counts of the prediction (u32) to `predictions.bin`; the deepest stack last.
//!
//! QEMU with `-icount shift=0` executes one instruction per nanosecond of virtual time, and SysTick counts at 25 MHz: a tick is
//! 40 instructions.
#![no_std]
#![no_main]

use core::ptr::addr_of_mut;

use circulant_edge::{Complex, Input, Model, Runtime, Sampling};
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, syscall};
use panic_halt as _;

include!(concat!(env!("OUT_DIR"), "/model.rs"));

const INPUTS: usize = 784;
const CLASSES: usize = 10;
/// Bytes below the stack pointer that are painted before the first image.
const PAINTED: usize = 16 * 1024;
const PAINT: u32 = 0x5ca1_ab1e;

#[cfg(not(feature = "fixed"))]
type Value = f32;
#[cfg(not(feature = "fixed"))]
const ZERO: Value = 0.0;
#[cfg(feature = "fixed")]
type Value = circulant_edge::Fixed;
#[cfg(feature = "fixed")]
const ZERO: Value = Value::from_bits(0);

static mut VALUES: [Complex<Value>; MEMORY] = [Complex::new(ZERO, ZERO); MEMORY];
static mut IMAGE: [u8; INPUTS] = [0; INPUTS];

fn open(name: &[u8], mode: usize) -> usize {
    // SAFETY: the host reads the name, which ends with a zero.
    unsafe { syscall!(OPEN, name.as_ptr(), mode, name.len() - 1) }
}

fn write_out(file: usize, words: &[u32]) {
    // SAFETY: the host reads the words.
    unsafe { syscall!(WRITE, file, words.as_ptr(), 4 * words.len()) };
}

/// Paints the stack below.
#[inline(never)]
fn paint() -> *mut u32 {
    let mut here = 0_u32;
    let top = (addr_of_mut!(here) as usize - 64) & !3;
    let bottom = (top - PAINTED) as *mut u32;
    for word in 0..PAINTED / 4 {
        // SAFETY: RAM below the stack pointer that nothing uses yet.
        unsafe { bottom.add(word).write_volatile(PAINT) };
    }
    bottom
}

#[entry]
fn main() -> ! {
    let Some(mut peripherals) = cortex_m::Peripherals::take() else {
        loop {}
    };
    let clock = &mut peripherals.SYST;
    clock.set_clock_source(SystClkSource::Core);
    clock.set_reload(0x00ff_ffff);
    clock.clear_current();
    clock.enable_counter();
    let bottom = paint();
    let top = {
        let mut here = 0_u32;
        addr_of_mut!(here) as usize
    };
    let (images, out) = (open(b"images.bin\0", 1), open(b"predictions.bin\0", 5));
    // SAFETY: nothing else takes them.
    let (memory, image) = unsafe { (&mut *addr_of_mut!(VALUES), &mut *addr_of_mut!(IMAGE)) };
    // The compiler must not know what is in it.
    let model = Model::read(core::hint::black_box(&MODEL));
    let runtime = model.and_then(|model| Runtime::new(model, memory));
    let Ok(mut runtime) = runtime else {
        debug::exit(debug::EXIT_FAILURE);
        loop {}
    };
    // SAFETY: the host fills the image.
    while unsafe { syscall!(READ, images, image.as_mut_ptr(), INPUTS) } == 0 {
        let mut words = [0_u32; CLASSES + 4];
        let begin = cortex_m::peripheral::SYST::get_current();
        let prediction = if cfg!(feature = "moments") {
            runtime.predict_moments(Input::Bytes(image))
        } else {
            runtime.predict(Input::Bytes(image), &Sampling::new(SAMPLES))
        };
        let end = cortex_m::peripheral::SYST::get_current();
        let Ok(prediction) = prediction else {
            debug::exit(debug::EXIT_FAILURE);
            loop {}
        };
        words[0] = prediction.class as u32;
        for k in 0..CLASSES {
            words[1 + k] = prediction.mean(k).to_bits();
        }
        words[CLASSES + 1] = prediction.predictive_entropy.to_bits();
        words[CLASSES + 2] = prediction.expected_entropy.to_bits();
        words[CLASSES + 3] = begin.wrapping_sub(end) & 0x00ff_ffff;
        write_out(out, &words);
    }
    let mut deepest = 0;
    for word in 0..PAINTED / 4 {
        // SAFETY: as in `paint`.
        if unsafe { bottom.add(word).read_volatile() } != PAINT {
            deepest = top - bottom as usize - 4 * word;
            break;
        }
    }
    write_out(out, &[deepest as u32]);
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}
