#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| circulant_fuzz::device(bytes));
