//! The table for the terminal: our numbers, and the paper's below them.

use super::results::{MnistResult, MnistResults};
use super::settings::LONGER;
use super::{MnistExperiment, paper};
use crate::report::number::grouped;

/// All models, and our variants below.
pub fn plain(experiment: &MnistExperiment, results: &MnistResults) -> String {
    let real = experiment.plan.sets.is_real();
    let mut text = String::new();
    if !real {
        text.push_str(
            "NOT MNIST: this ran on drawn glyphs. The paper's numbers are about other data and not comparable.\n\n",
        );
    }
    let seeds: Vec<String> = results.seeds.iter().map(u64::to_string).collect();
    text.push_str(&format!(
        "{} against {}, seeds {}, {} posterior samples\n",
        results.data,
        results.ood,
        seeds.join(", "),
        results.samples
    ));
    let mut head = format!("{:<34}{:>9}", "model", "weights");
    for metric in paper::metrics() {
        head.push_str(&format!("{:>12}", metric.heading()));
    }
    head.push_str(&format!("{:>9}\n", "seconds"));
    text.push_str(&head);
    for outcome in &experiment.models {
        text.push_str(&row(&outcome.variant.title, &outcome.result));
        if let Some(numbers) = paper::row(outcome.variant.config.model.kind).filter(|_| real) {
            let numbers: String = numbers.iter().map(|x| format!("{x:>12.3}")).collect();
            text.push_str(&format!("{:<34}{:>9}{numbers}\n", "  paper", ""));
        }
    }
    if !experiment.beyond.is_empty() {
        text.push_str(&format!("beyond the paper, {LONGER} times the steps:\n"));
    }
    for outcome in &experiment.beyond {
        text.push_str(&row(&outcome.variant.title, &outcome.result));
    }
    text
}

fn row(title: &str, result: &MnistResult) -> String {
    let numbers = paper::ours(result).map(|values| format!("{:>12.3}", values.mean));
    format!(
        "{title:<34}{:>9}{}{:>9.1}\n",
        grouped(result.weights as u64),
        numbers.concat(),
        result.seconds.mean
    )
}
