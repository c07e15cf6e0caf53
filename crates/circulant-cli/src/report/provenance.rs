//! Where the numbers come from: enough to run it again.

use super::escape::escape;

/// The footer of a report. Empty fields are left out.
#[derive(Debug, Clone, Default)]
pub struct Provenance {
    pub command: String,
    pub seeds: Vec<u64>,
    /// Names and versions of the program and what matters to its numbers.
    pub versions: Vec<(String, String)>,
    pub commit: String,
    /// Processor, cores, system.
    pub machine: String,
    /// When the run ended. The caller gives it, so that a report can be made again byte by byte.
    pub date: String,
    pub duration: String,
    /// The complete configuration, as TOML or JSON.
    pub config: String,
}

impl Provenance {
    pub(super) fn html(&self) -> String {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let versions: Vec<String> = self
            .versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        let rows = [
            ("Command", &self.command, true),
            ("Seeds", &seeds.join(", "), false),
            ("Versions", &versions.join(", "), false),
            ("Commit", &self.commit, true),
            ("Machine", &self.machine, false),
            ("Date", &self.date, false),
            ("Duration", &self.duration, false),
        ];
        let mut html = String::from(
            "<footer id=\"provenance\">\n<h2>Where these numbers come from</h2>\n<dl>\n",
        );
        for (name, value, code) in rows {
            if value.is_empty() {
                continue;
            }
            let value = escape(value);
            let value = if code {
                format!("<code>{value}</code>")
            } else {
                value
            };
            html.push_str(&format!("<dt>{name}</dt><dd>{value}</dd>\n"));
        }
        html.push_str("</dl>\n");
        if !self.config.is_empty() {
            html.push_str(&format!(
                "<details>\n<summary>Complete configuration</summary>\n<pre>{}</pre>\n</details>\n",
                escape(&self.config)
            ));
        }
        html.push_str("</footer>\n");
        html
    }
}
