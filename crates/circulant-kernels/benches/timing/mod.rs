//! The flags of a benchmark and its clock.

use std::time::{Duration, Instant};

/// What the command line asks for.
pub struct Options {
    pub json: bool,
    pub case: String,
    pub seconds: f64,
    pub threads: usize,
}

impl Options {
    /// Reads the flags and starts that many threads; a wrong flag ends the program.
    pub fn start() -> Self {
        let options = Self::parse().unwrap_or_else(|message| {
            eprintln!("{message}");
            std::process::exit(2);
        });
        circulant_kernels::join_pool(options.threads).expect("the pool is built once");
        options
    }

    /// The line of a case for machines, with the result where others can check it.
    pub fn print_json(&self, case: &str, time: Time, value: Option<f64>) {
        println!(
            "{}",
            serde_json::json!({"case": case, "unit": "ms", "best": time.best, "median": time.median, "threads": self.threads, "value": value})
        );
    }

    fn parse() -> Result<Self, String> {
        let mut options = Self {
            json: false,
            case: String::new(),
            seconds: 1.0,
            threads: 2,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(flag) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{flag} needs a value"));
            match flag.as_str() {
                "--json" => options.json = true,
                "--bench" => {}
                "--case" => options.case = value()?,
                "--seconds" => {
                    options.seconds = value()?.parse().map_err(|e| format!("--seconds: {e}"))?
                }
                "--threads" => {
                    options.threads = value()?.parse().map_err(|e| format!("--threads: {e}"))?
                }
                other => {
                    return Err(format!(
                        "unknown flag {other}; known: --json --case --seconds --threads"
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// Best and median milliseconds of a call.
#[derive(Clone, Copy)]
pub struct Time {
    pub best: f64,
    pub median: f64,
}

/// Times of several versions of the same work, taken in turns so that noise hits all alike.
pub fn time(seconds: f64, versions: &mut [Box<dyn FnMut() + '_>]) -> Vec<Time> {
    // Short calls are timed in groups, or the clock would be what is measured.
    let groups: Vec<usize> = versions
        .iter_mut()
        .map(|run| {
            run();
            let start = Instant::now();
            run();
            (Duration::from_micros(200).as_secs_f64() / start.elapsed().as_secs_f64())
                .clamp(1.0, 1000.0) as usize
        })
        .collect();
    let mut samples = vec![Vec::new(); versions.len()];
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end || samples[0].len() < 5 {
        for ((run, &group), samples) in versions.iter_mut().zip(&groups).zip(&mut samples) {
            let start = Instant::now();
            for _ in 0..group {
                run();
            }
            samples.push(start.elapsed().as_secs_f64() * 1e3 / group as f64);
        }
    }
    samples
        .into_iter()
        .map(|mut samples| {
            samples.sort_by(f64::total_cmp);
            Time {
                best: samples[0],
                median: samples[samples.len() / 2],
            }
        })
        .collect()
}
