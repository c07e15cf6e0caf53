//! The program as a process, and small files for it.

use std::fmt;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::rc::Rc;

use tempfile::TempDir;

/// A place that command lines can have in them.
#[derive(Clone)]
pub struct Place {
    path: PathBuf,
    /// The folder of the test, which goes with its last place.
    _root: Option<Rc<TempDir>>,
}

impl Place {
    /// An empty folder of a test.
    pub fn temporary() -> Self {
        let root = TempDir::new().expect("a folder");
        Self {
            path: root.path().to_owned(),
            _root: Some(Rc::new(root)),
        }
    }

    /// A file or folder in it.
    pub fn at(&self, name: impl AsRef<Path>) -> Self {
        Self {
            path: self.path.join(name),
            _root: self._root.clone(),
        }
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self { path, _root: None }
    }
}

impl Deref for Place {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for Place {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

/// Arguments of the program: as one types them, separated by spaces, or one by one.
pub trait CommandLine {
    /// One by one.
    fn words(&self) -> Vec<&str>;
}

impl CommandLine for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl CommandLine for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl CommandLine for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> CommandLine for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl CommandLine for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<T: CommandLine + ?Sized> CommandLine for &T {
    fn words(&self) -> Vec<&str> {
        (**self).words()
    }
}

/// The program, with nothing of the user's around it.
pub fn program(line: impl CommandLine) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_circulant"));
    command
        .args(line.words())
        .env("CIRCULANT_CACHE", "/nonexistent/cache")
        .env_remove("CIRCULANT_DATA")
        .env_remove("CIRCULANT_MIRROR");
    command
}

/// Runs it to its end.
pub fn circulant(line: impl CommandLine) -> Output {
    program(line).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Nothing panicked; what is on stderr.
pub fn stderr(output: &Output) -> String {
    let text = text(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// Stdout of a program that succeeds.
pub fn success(line: impl CommandLine) -> String {
    let output = circulant(&line);
    let errors = stderr(&output);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{:?}: {errors}",
        line.words()
    );
    text(&output.stdout)
}

/// The one JSON value on stdout of a program that succeeds, which has a version.
pub fn json(line: impl CommandLine) -> serde_json::Value {
    let value: serde_json::Value = serde_json::from_str(&success(&line)).expect("JSON");
    assert_eq!(value["version"], 2, "{:?}", line.words());
    value
}

/// The JSON value of a file.
pub fn json_file(path: impl AsRef<Path>) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// The message of a program that ends with this code: it has all of `parts`, and nothing is on stdout.
pub fn refusal(code: i32, line: impl CommandLine, parts: &[&str]) -> String {
    let output = circulant(&line);
    let (message, line) = (stderr(&output), line.words());
    assert_eq!(output.status.code(), Some(code), "{line:?}: {message}");
    assert!(output.stdout.is_empty(), "{line:?}");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    message
}

/// The words of a command line.
pub fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// Flags of a training that takes a moment.
pub const QUICK: &str = "--data glyphs --first 400 --steps 20 --batch 32 --checkpoint-every 10";

/// Trains into `root/name`, with more flags.
pub fn trained(root: &Path, name: &str, more: impl CommandLine) -> Place {
    let out = Place::from(root.join(name));
    let more = more.words();
    let quick = if more.contains(&"--data") { "" } else { QUICK };
    success(format!("train --out {out} {quick} {}", more.join(" ")));
    out
}

/// A path as an argument.
pub fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// All files of a folder with their bytes, in order.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let bytes = fs::read(&path).expect("a file");
            (path, bytes)
        })
        .collect();
    files.sort();
    files
}

/// Copies the files of a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new folder");
    for (path, bytes) in contents(from) {
        fs::write(to.join(path.file_name().expect("a file")), bytes).expect("space");
    }
}

/// An NPY file of f32.
pub fn npy(path: &Path, shape: &[usize], values: &[f32]) {
    let sizes: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
    let header = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}\n",
        sizes.concat()
    );
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    fs::write(path, bytes).expect("space");
}

/// A run with images of 6 x 6 in three classes, and its data.
pub fn small(root: &Path) -> (Place, Place) {
    let data = Place::from(root.join("images.npy"));
    let images: Vec<f32> = (0..30 * 36).map(|i| (i % 17) as f32 / 17.0).collect();
    npy(&data, &[30, 1, 6, 6], &images);
    let labels: Vec<f32> = (0..30).map(|i| (i % 3) as f32).collect();
    npy(&root.join("labels.npy"), &[30], &labels);
    let flags = format!("--data {data} --steps 3 --batch 10");
    (trained(root, "run", flags), data)
}

/// The C program of an exported folder, as a strict compiler makes it.
pub fn compiled(folder: &Path) -> PathBuf {
    let program = folder.join("network");
    let flags = ["-O2", "-o", path(&program)];
    compile("gcc", folder, &["main.c", "circulant.c"], &flags, &["-lm"]);
    program
}

/// Whether all levels of optimisation take the C of an exported folder without a warning, and the compiler for microcontrollers if it is
/// installed.
pub fn compiles_at_every_level(folder: &Path) {
    let arm = [
        "-mcpu=cortex-m4",
        "-mthumb",
        "-mfloat-abi=hard",
        "-mfpu=fpv4-sp-d16",
    ];
    let has_arm = Command::new("arm-none-eabi-gcc").arg("--version").output();
    for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
        for file in ["main.c", "circulant.c"] {
            let object = folder.join("network.o");
            let flags = [level, "-c", "-o", path(&object)];
            compile("gcc", folder, &[file], &flags, &[]);
            if has_arm.is_ok() {
                let flags = [&arm[..], &flags].concat();
                compile("arm-none-eabi-gcc", folder, &[file], &flags, &[]);
            }
        }
    }
}

fn compile(compiler: &str, folder: &Path, files: &[&str], flags: &[&str], libraries: &[&str]) {
    let output = Command::new(compiler)
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .args(files.iter().map(|file| folder.join(file)))
        .args(libraries)
        .output()
        .expect("a compiler");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {flags:?}: {told}");
}
