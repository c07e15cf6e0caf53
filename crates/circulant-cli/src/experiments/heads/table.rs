//! The table for the terminal: our numbers, and the paper's below them.

use super::results::HeadsResults;
use super::{HeadsExperiment, paper};
use crate::report::number::grouped;

/// All heads.
pub fn plain(experiment: &HeadsExperiment, results: &HeadsResults) -> String {
    let seeds: Vec<String> = results.seeds.iter().map(u64::to_string).collect();
    let mut text = format!(
        "{}: {} features, seeds {}, {} posterior samples; AUROC over {} kinds of corrupted images\n",
        results.data,
        results.features,
        seeds.join(", "),
        results.samples,
        experiment.plan.sets.corrupted.len()
    );
    text.push_str(&format!("{:<20}{:>9}", "head", "weights"));
    for metric in paper::metrics() {
        text.push_str(&format!("{:>12}", metric.heading()));
    }
    text.push_str(&format!(
        "{:>11}{:>10}{:>9}\n",
        "Lipschitz", "radius", "seconds"
    ));
    for outcome in &experiment.heads {
        let result = &outcome.result;
        let numbers: String = result
            .columns()
            .map(|values| format!("{:>12.3}", values.mean))
            .concat();
        text.push_str(&format!(
            "{:<20}{:>9}{numbers}{:>11.2}{:>10.4}{:>9.1}\n",
            outcome.variant.title,
            grouped(result.weights as u64),
            result.geometry.lipschitz,
            result.geometry.radius.median,
            result.seconds.mean
        ));
        if let Some(row) = experiment
            .plan
            .is_the_papers()
            .then(|| paper::row(&result.name))
            .flatten()
        {
            let numbers: String = row
                .map(|number| {
                    number.map_or(format!("{:>12}", "-"), |number| format!("{number:>12.3}"))
                })
                .concat();
            text.push_str(&format!("{:<20}{:>9}{numbers}\n", "  paper", ""));
        }
    }
    text
}
