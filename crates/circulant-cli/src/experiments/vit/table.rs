//! The tables for the terminal.

use super::paper;
use super::report::comparison;
use super::results::VitResults;
use super::sets::PaperData;

/// All models, the paper's below ours, then the curvature.
pub fn plain(results: &VitResults, data: Option<PaperData>) -> String {
    let [training, validation, test] = results.images;
    format!(
        "{}: {training} training images, {validation} for validation, {test} for the test\n{}\n\n{}{}",
        results.data,
        results.stopped,
        comparison(data, results).plain(),
        curvature(results, data)
    )
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
