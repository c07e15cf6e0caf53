//! The tables for the terminal.

use super::paper;
use super::results::{VitResults, VitRunResult};
use super::sets::PaperData;
use crate::report::number::grouped;

/// All models, the paper's below ours, then the curvature.
pub fn plain(results: &VitResults, data: Option<PaperData>) -> String {
    let [training, validation, test] = results.images;
    let mut text = format!(
        "{}: {} training images, {} for validation, {} for the test\n{}\n\n",
        results.data,
        grouped(training as u64),
        grouped(validation as u64),
        grouped(test as u64),
        results.stopped
    );
    text.push_str(&format!(
        "{:<28}{:>12}{:>10}{:>8}{:>8}{:>12}{:>8}{:>10}\n",
        "model", "parameters", "accuracy", "NLL", "ECE", "best epoch", "epochs", "images/s"
    ));
    for model in &results.models {
        let epochs = |pick: fn(&VitRunResult) -> u64| -> String {
            let epochs: Vec<String> = model.runs.iter().map(|run| pick(run).to_string()).collect();
            epochs.join(",")
        };
        text.push_str(&format!(
            "{:<28}{:>12}{:>10.3}{:>8.3}{:>8.3}{:>12}{:>8}{:>10.0}\n",
            model.name.name(),
            grouped(model.parameters as u64),
            model.accuracy.mean,
            model.nll.mean,
            model.ece.mean,
            epochs(|run| run.best_epoch),
            epochs(|run| run.epochs),
            model.images_per_second.mean
        ));
        if let Some(row) = data.and_then(|data| paper::row(data, model.name)) {
            text.push_str(&format!(
                "{:<28}{:>12}{:>10.3}{:>8.3}{:>8}{:>12}\n",
                "  paper",
                grouped(row.parameters as u64),
                row.accuracy,
                row.nll,
                "",
                row.best_epoch
            ));
        }
    }
    text + &curvature(results, data)
}

fn curvature(results: &VitResults, data: Option<PaperData>) -> String {
    let mut text = String::new();
    for model in &results.models {
        for measured in model.runs.iter().filter_map(|run| run.curvature.as_ref()) {
            for space in &measured.spaces {
                if text.is_empty() {
                    text = format!(
                        "\n{:<28}{:>12}{:>14}   dominant eigenvalues of the validation loss, {} images\n",
                        "curvature", "Hessian", "Gauss-Newton", measured.settings.images
                    );
                }
                text.push_str(&format!(
                    "{:<28}{:>12.4}{:>14.4}\n",
                    format!("{}, {}", model.name.name(), space.subspace.title()),
                    space.hessian.value,
                    space.gauss_newton.value
                ));
                let paper =
                    data.and_then(|data| paper::curvature(data, model.name, space.subspace));
                if let Some([hessian, gauss_newton]) = paper {
                    text.push_str(&format!(
                        "{:<28}{hessian:>12.2}{gauss_newton:>14.1}\n",
                        "  paper"
                    ));
                }
            }
        }
    }
    text
}
