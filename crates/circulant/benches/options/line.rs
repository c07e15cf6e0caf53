//! The line of a case.

use crate::options::Options;

impl Options {
    /// The line of a case; `note` is what people read behind its times.
    pub fn print(&self, case: &str, (best, median): (f64, f64), note: &str) {
        if self.json {
            let threads = self.threads;
            let line = serde_json::json!({ "case": case, "unit": "ms", "best": best, "median": median, "threads": threads });
            println!("{line}");
        } else {
            println!("{case:<44} best {best:>9.3} ms, median {median:>9.3} ms{note}");
        }
    }
}
