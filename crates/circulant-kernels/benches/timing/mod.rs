//! What the benchmarks share: their flags, numbers, clock and table.

use std::time::{Duration, Instant};

/// What the command line asks for.
pub struct Options {
    json: bool,
    case: String,
    seconds: f64,
    pub threads: usize,
    /// Where the numbers of one case go instead of its times.
    pub export: Option<String>,
}

impl Options {
    fn parse() -> Result<Self, String> {
        let mut options = Self {
            json: false,
            case: String::new(),
            seconds: 1.0,
            threads: 2,
            export: None,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(flag) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{flag} needs a value"));
            let wrong = |error: &dyn std::fmt::Display| format!("{flag}: {error}");
            match flag.as_str() {
                "--json" => options.json = true,
                "--bench" => {}
                "--case" => options.case = value()?,
                "--export" => {
                    options.case = value()?;
                    options.export = Some(value()?);
                }
                "--seconds" => options.seconds = value()?.parse().map_err(|e| wrong(&e))?,
                "--threads" => options.threads = value()?.parse().map_err(|e| wrong(&e))?,
                _ => {
                    let known = "--json --case --seconds --threads --export";
                    return Err(format!("unknown flag {flag}; known: {known}"));
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

/// Ways to do the same, by name; ours is the first.
pub type Versions<'a> = Vec<(&'static str, Box<dyn FnMut() + 'a>)>;

/// Prints a line per case.
pub struct Report {
    pub options: Options,
}

impl Report {
    /// Reads the flags, starts that many threads and prints the head of the table, where `figure` is what a case has beside
    /// its times. A wrong flag ends the program.
    pub fn start(figure: &str) -> Self {
        let options = Options::parse().unwrap_or_else(|message| {
            eprintln!("{message}");
            std::process::exit(2);
        });
        circulant_kernels::join_pool(options.threads).expect("the pool is built once");
        if !options.json && options.export.is_none() {
            println!("{} threads, milliseconds", options.threads);
            println!(
                "{:<44} {:>9} {:>9} {figure:>10}  others, best",
                "case", "best", "median"
            );
        }
        Self { options }
    }

    pub fn wants(&self, case: &str) -> bool {
        match self.options.export {
            Some(_) => case == self.options.case,
            None => case.contains(&self.options.case),
        }
    }

    /// Times all versions in turns and prints their line. The figure is made of our best time; `value` is a result that
    /// others can check.
    pub fn line(
        &self,
        case: &str,
        mut versions: Versions<'_>,
        figure: impl Fn(f64) -> f64,
        value: Option<f64>,
    ) {
        let options = &self.options;
        if options.json {
            versions.truncate(1);
        }
        let (names, mut runs): (Vec<_>, Vec<_>) = versions.into_iter().unzip();
        let times = time(options.seconds, &mut runs);
        let Time { best, median } = times[0];
        if options.json {
            let threads = options.threads;
            println!(
                "{}",
                serde_json::json!({"case": case, "unit": "ms", "best": best, "median": median, "threads": threads, "value": value})
            );
            return;
        }
        print!(
            "{case:<44} {best:>9.4} {median:>9.4} {:>10.4} ",
            figure(best)
        );
        for (name, time) in names.iter().zip(&times).skip(1) {
            print!(" {name} {:.3} ({:.1}x)", time.best, time.best / best);
        }
        println!();
    }
}

/// Times of several versions of the same work, taken in turns so that noise hits all alike.
fn time(seconds: f64, versions: &mut [Box<dyn FnMut() + '_>]) -> Vec<Time> {
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
    let summary = |mut samples: Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        Time {
            best: samples[0],
            median: samples[samples.len() / 2],
        }
    };
    samples.into_iter().map(summary).collect()
}

/// Uniform numbers of variance 1, from the indices by SplitMix64: `bench/peers` makes those of the first stream too.
pub fn numbers(stream: u64, len: usize) -> impl Iterator<Item = f64> {
    (0..len as u64).map(move |index| {
        let z = ((stream << 32) + index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        (unit - 0.5) * 12_f64.sqrt()
    })
}
