//! Progress on stderr: a bar on a terminal, a line now and then otherwise.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::ranks::{say, speaks};

/// How far one piece of work is.
pub struct WorkProgress {
    title: String,
    total: u64,
    bar: Option<ProgressBar>,
    /// Whether there are lines instead of a bar.
    lines: bool,
    last_line: Instant,
}

/// Work of unknown size: a spinner on a terminal for as long as this lives.
pub struct Busy(Option<ProgressBar>);

impl Busy {
    /// Says what takes its time.
    pub fn new(title: impl Into<String>) -> Self {
        Self(has_bar().then(|| {
            let bar = ProgressBar::new_spinner().with_message(title.into());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        }))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Whether this process shows bars.
fn has_bar() -> bool {
    speaks() && stderr().is_terminal()
}

/// Between two lines where there is no terminal.
const LINES_EVERY: Duration = Duration::from_secs(10);

impl WorkProgress {
    /// Work of `total` parts under a title.
    pub fn new(title: impl Into<String>, total: u64) -> Self {
        let title = title.into();
        let bar = has_bar().then(|| {
            let bar = ProgressBar::new(total);
            let template = "{prefix:<28} {wide_bar} {pos}/{len} {msg} {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_prefix(title.clone());
            bar
        });
        Self {
            title,
            total,
            bar,
            lines: true,
            last_line: Instant::now(),
        }
    }

    /// The same without lines where there is no terminal, for work of a few seconds.
    pub fn quiet(title: impl Into<String>, total: u64) -> Self {
        Self {
            lines: false,
            ..Self::new(title, total)
        }
    }

    /// The same for work whose size was not known before.
    pub fn of(&mut self, total: u64) -> &mut Self {
        if self.total != total {
            self.total = total;
            if let Some(bar) = &self.bar {
                bar.set_length(total);
            }
        }
        self
    }

    /// So many parts are done; `note` says more, such as the loss.
    pub fn at(&mut self, done: u64, note: impl FnOnce() -> String) {
        match &self.bar {
            // Writing to a terminal costs more than a small step.
            Some(bar)
                if done == self.total || self.last_line.elapsed() > Duration::from_millis(50) =>
            {
                self.last_line = Instant::now();
                bar.set_message(note());
                bar.set_position(done);
            }
            None if self.lines && self.last_line.elapsed() > LINES_EVERY => {
                self.last_line = Instant::now();
                say!("{}: {done}/{} {}", self.title, self.total, note());
            }
            _ => {}
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Takes the bar away and leaves a line.
    pub fn finish(self, text: impl AsRef<str>) {
        self.clear();
        say!("{}: {}", self.title, text.as_ref());
    }
}
