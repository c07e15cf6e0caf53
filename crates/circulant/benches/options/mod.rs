//! What the benchmarks have in common: flags, the clock, the line of a case.

use std::time::{Duration, Instant};

/// That of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the command line asks for.
pub struct Options {
    /// For machines: one line of JSON per case.
    pub json: bool,
    /// Only cases with this in their name.
    pub case: String,
    /// Per case.
    pub seconds: f64,
    pub threads: usize,
}

impl Options {
    /// Reads the flags and joins the pool with that many threads. `own(flag, value)` takes a flag that only this benchmark
    /// has, and says whether it knows it. A wrong flag ends the program.
    pub fn start(
        seconds: f64,
        mut own: impl FnMut(&str, &mut dyn FnMut() -> String) -> bool,
    ) -> Self {
        let mut options = Self {
            json: false,
            case: String::new(),
            seconds,
            threads: 2,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(flag) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.unwrap_or_else(|| exit(&format!("{flag}: expected a value, found none")))
            };
            match flag.as_str() {
                "--json" => options.json = true,
                "--case" => options.case = value(),
                "--seconds" => options.seconds = number(&flag, &value()),
                "--threads" => options.threads = number(&flag, &value()),
                // Cargo's own.
                "--bench" => {}
                other if own(other, &mut value) => {}
                other => exit(&format!(
                    "unknown flag {other}; see the head of the benchmark's file"
                )),
            }
        }
        circulant::join_pool(options.threads).expect("nothing has used the pool yet");
        options
    }
}

/// Best and median in milliseconds.
pub fn statistics(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    (milliseconds(times[0]), milliseconds(times[times.len() / 2]))
}

/// The same of a call, at least three times.
pub fn time(seconds: f64, mut work: impl FnMut()) -> (f64, f64) {
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 3 || start.elapsed().as_secs_f64() < seconds {
        let begin = Instant::now();
        work();
        times.push(begin.elapsed());
    }
    statistics(times)
}

/// The number behind a flag.
pub fn number<N: std::str::FromStr>(flag: &str, value: &str) -> N {
    let parsed = value.parse();
    parsed.unwrap_or_else(|_| exit(&format!("{flag}: expected a number, found {value}")))
}

fn exit(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2)
}
