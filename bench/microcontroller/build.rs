//! The memory of the machine, and the sizes that the program is built with.
use std::{env, fs, path::PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // MPS2 with an AN386 (Cortex-M4F) or AN385 image: 4 MiB at 0, RAM at 0x20000000.
    let memory = "MEMORY { FLASH : ORIGIN = 0x00000000, LENGTH = 4M  RAM : ORIGIN = 0x20000000, LENGTH = 4M }\n";
    fs::write(out.join("memory.x"), memory).expect("space");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg=-Tlink.x");
    let model = env::var("MODEL").expect("MODEL names a .circ file");
    let bytes = fs::read(&model).expect("MODEL can be read");
    let samples = env::var("SAMPLES").unwrap_or("8".to_owned());
    let memory = env::var("MEMORY").expect("MEMORY, as `circulant export --json` says");
    let text = format!(
        "pub const SAMPLES: u32 = {samples};\npub const MEMORY: usize = {memory};\npub static MODEL: [u8; {}] = *include_bytes!({model:?});\n",
        bytes.len()
    );
    fs::write(out.join("model.rs"), text).expect("space");
    for name in ["MODEL", "SAMPLES", "MEMORY"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed={model}");
}
