//! Progress on stderr: a bar on a terminal, plain lines otherwise.

use std::io::{IsTerminal, stderr};
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};

use crate::ranks::{say, speaks};
use circulant_data::fetch::Progress;

/// Shows a fetch.
pub struct Display {
    terminal: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Display {
    /// Looks at what stderr is.
    pub fn new() -> Self {
        Self {
            terminal: speaks() && stderr().is_terminal(),
            bar: Mutex::new(None),
        }
    }

    fn with_bar(&self, action: impl FnOnce(&mut Option<ProgressBar>)) {
        // A bar has no state that a panic elsewhere could break.
        let mut bar = self.bar.lock().unwrap_or_else(|broken| broken.into_inner());
        action(&mut bar);
    }
}

impl Progress for Display {
    fn note(&self, text: &str) {
        say!("{text}");
    }

    fn start(&self, what: &str, done: u64, total: Option<u64>) {
        if !self.terminal {
            let total = total.map_or("unknown size".to_owned(), size);
            return match done {
                0 => say!("{what}: {total}"),
                _ => say!("{what}: {total}, resuming after {}", size(done)),
            };
        }
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::new_spinner(),
        };
        let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.set_position(done);
        bar.reset_eta();
        self.with_bar(|slot| *slot = Some(bar));
    }

    fn advance(&self, bytes: u64) {
        self.with_bar(|bar| {
            if let Some(bar) = bar {
                bar.inc(bytes);
            }
        });
    }

    fn finish(&self) {
        self.with_bar(|slot| {
            if let Some(bar) = slot.take() {
                bar.finish_and_clear();
            }
        });
    }
}

/// Bytes for people.
pub fn size(bytes: u64) -> String {
    match bytes {
        0 => "-".to_owned(),
        1..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(0), "-");
        assert_eq!(size(10_008), "10.0 kB");
        assert_eq!(size(184_380_000), "184.4 MB");
    }
}
