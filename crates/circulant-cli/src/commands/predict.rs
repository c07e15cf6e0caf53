//! `circulant predict`: the classes of inputs, with what the network does not know about them.

mod targets;

use std::path::PathBuf;

use circulant::bayes::Predictions;
use circulant::conformal::PredictionSets;
use clap::Args;
use serde::Serialize;

use super::guarantee::Coverage;
use super::output::{OutFile, RowFormat, print};
use super::reading::Reading;
use crate::experiments::config::{DataConfig, Draw};
use crate::experiments::evaluation::Sampling;
use crate::experiments::loaded::{self, TrainedRun};
use crate::experiments::ood_score::{Score, Scorer};
use crate::experiments::regression::LoadedRegression;
use crate::experiments::version::VERSION;
use crate::files::write;
use crate::ranks::{self, say};
use circulant_data::{ImageSet, Split, npy};

/// Predict the classes of images or features, with uncertainties.
///
/// Averages the class probabilities over networks drawn from the posterior. Per input: the most probable class, the
/// probability of every class, the predictive entropy (all uncertainty, in nats), the expected entropy (what
/// more training data would not remove) and the mutual information (what more data would remove; high for inputs unlike
/// the training data). Labels are not needed. Where the target is a number: its mean, its standard deviation with the two parts of it
/// (noise, and what more data would remove), and an interval, in the target's own unit: the central 90 % of the prediction, or the one that
/// --coverage promises.
#[derive(Args)]
#[command(after_help = "The file's name says its format:
  .csv    index, file (of pictures), class, name, probability_0, probability_1, ..., predictive_entropy, expected_entropy,
          mutual_information; with --score also score, with --coverage set, the classes with spaces between
  .json   an array of objects with the same entries and the format's version, the probabilities as one array
  .jsonl  the same objects, one per line
  .npy    float32 [inputs, classes + 3]: the probabilities of all classes, then predictive entropy,
          expected entropy, mutual information; with --score also the score, with --coverage 1 or 0 for every class, whether
          it is in the set
Where the target is a number, the entries are mean, deviation, aleatoric, epistemic, lower, upper.

Examples:
  circulant predict runs/first --data mnist --out predictions.csv
  circulant predict runs/pictures --data photo.jpg
  circulant predict runs/pictures --data 'photos/*.png' --json
  find photos -name '*.jpg' | circulant predict runs/pictures --data -
  circulant predict runs/first --data new-images.npy --samples 200 --out predictions.npy
  circulant predict runs/first --data fashion-mnist --first 100 --json | head
  circulant predict runs/first --data fashion-mnist --score --out scores.csv
  circulant predict runs/first --data mnist --coverage 0.95 --calibration mnist:train")]
pub struct Predict {
    /// The folder of a run, as `circulant train` makes it.
    run: PathBuf,
    /// A data set by name (see `circulant data list`) or a path; for pictures also a folder without classes, one file,
    /// a pattern in quotes, or - for a list of files on stdin. Read as the run's own data were, unless flags say
    /// otherwise; pictures are scaled to the model's size.
    #[arg(long, value_name = "NAME|PATH")]
    data: String,
    /// The part to read, where there are two.
    #[arg(long, value_parser = super::flags::split(), default_value_t = Split::Test)]
    split: Split,
    /// Networks to draw from the posterior.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    samples: u32,
    /// The seed of the networks that are drawn.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Add a score that is high for inputs unlike the training data [without a word: feature-density].
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "feature-density")]
    score: Option<Score>,
    /// Write to this file instead of CSV to stdout.
    #[arg(long, value_name = "FILE.{csv,json,jsonl,npy}", value_parser = parse_out)]
    out: Option<OutFile>,
    /// Print one JSON object per input to stdout.
    #[arg(long, conflicts_with = "out")]
    json: bool,
    // Last: their headings hold for all flags that follow.
    #[command(flatten)]
    coverage: Coverage,
    #[command(flatten)]
    reading: Reading,
}

fn parse_out(text: &str) -> Result<OutFile, String> {
    use RowFormat::{Csv, Json, JsonLines, Npy};
    OutFile::parse(text, &[Csv, Json, JsonLines, Npy])
}

/// What is known about one input.
#[derive(Serialize)]
struct PredictedRow<'a> {
    version: u32,
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    class: usize,
    name: Option<&'a str>,
    probabilities: &'a [f32],
    predictive_entropy: f32,
    expected_entropy: f32,
    mutual_information: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<Vec<usize>>,
}

impl Predict {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let place = ranks::folder(&self.run)?;
        if let Some(run) = LoadedRegression::open(&place)? {
            return self.targets(&run);
        }
        let guarantee = self.coverage.guarantee()?;
        let run = loaded::open(&place)?;
        let mut options = DataConfig {
            // Row by row as in the file.
            draw: Draw::InOrder,
            ..run.reading()
        };
        self.reading.apply(&mut options);
        let set = run.images(&self.data, self.split, &options)?;
        let sampling = Sampling {
            // Draws from a point are all the same.
            samples: if run.is_bayesian() {
                self.samples as usize
            } else {
                1
            },
            seed: self.seed,
        };
        let predictions = run.predict(&sampling, &set, "predicting")?;
        let sets = match guarantee {
            None => None,
            Some(guarantee) => {
                let reading = DataConfig {
                    first: None,
                    draw: Draw::default(),
                    ..options
                };
                let sets = guarantee.calibrate(&*run, &sampling, &reading)?;
                say!("{}", sets.line());
                Some(sets.of(&*run, &sampling, &set, &predictions)?)
            }
        };
        let scores = match self.score {
            None => Vec::new(),
            Some(score) => Scorer::new(score, &*run)?.values(&*run, &set, &predictions)?,
        };
        let rows = rows(&*run, &set, &predictions, &scores, sets.as_ref());
        match &self.out {
            None if self.json => print(&json_lines(&rows)?),
            None => print(&csv(&rows, predictions.classes)?),
            Some(file) => {
                let bytes = match file.format {
                    RowFormat::Csv => csv(&rows, predictions.classes)?.into_bytes(),
                    RowFormat::Json => (serde_json::to_string_pretty(&rows)? + "\n").into_bytes(),
                    RowFormat::JsonLines => json_lines(&rows)?.into_bytes(),
                    RowFormat::Npy => array(&rows, predictions.classes),
                };
                write(&file.path, &bytes)?;
                say!("{} predictions in {}", rows.len(), file.path.display());
                Ok(())
            }
        }
    }
}

fn rows<'a>(
    run: &'a dyn TrainedRun,
    set: &'a ImageSet,
    predictions: &'a Predictions,
    scores: &[f32],
    sets: Option<&PredictionSets>,
) -> Vec<PredictedRow<'a>> {
    let classes = predictions.classes_of_inputs();
    let information = predictions.mutual_information();
    let rows = classes.zip(information).enumerate();
    rows.map(|(index, (class, mutual_information))| PredictedRow {
        version: VERSION,
        index,
        file: set.files().get(index).map(String::as_str),
        class,
        name: run.class_name(class),
        probabilities: &predictions.probabilities[index * predictions.classes..]
            [..predictions.classes],
        predictive_entropy: predictions.predictive_entropy[index],
        expected_entropy: predictions.expected_entropy[index],
        mutual_information,
        score: scores.get(index).copied(),
        set: sets.map(|sets| sets.classes_of(index).collect()),
    })
    .collect()
}

fn json_lines(rows: &[PredictedRow<'_>]) -> anyhow::Result<String> {
    let mut text = String::new();
    for row in rows {
        text.push_str(&serde_json::to_string(row)?);
        text.push('\n');
    }
    Ok(text)
}

fn csv(rows: &[PredictedRow<'_>], classes: usize) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let probabilities = (0..classes).map(|class| format!("probability_{class}"));
    let has_files = rows.iter().any(|row| row.file.is_some());
    let header = ["index", "file", "class", "name"].map(str::to_owned);
    let header = header
        .into_iter()
        .filter(|name| has_files || name != "file");
    let uncertainties = [
        "predictive_entropy",
        "expected_entropy",
        "mutual_information",
    ];
    let header = header
        .chain(probabilities)
        .chain(uncertainties.map(str::to_owned));
    let has_sets = rows.iter().any(|row| row.set.is_some());
    let has_scores = rows.iter().any(|row| row.score.is_some());
    let header = header
        .chain(has_scores.then(|| "score".to_owned()))
        .chain(has_sets.then(|| "set".to_owned()));
    writer.write_record(header)?;
    for row in rows {
        writer.write_field(row.index.to_string())?;
        if has_files {
            writer.write_field(row.file.unwrap_or_default())?;
        }
        writer.write_field(row.class.to_string())?;
        writer.write_field(row.name.unwrap_or_default())?;
        for value in numbers(row) {
            writer.write_field(value.to_string())?;
        }
        if let Some(set) = &row.set {
            let classes: Vec<String> = set.iter().map(usize::to_string).collect();
            writer.write_field(classes.join(" "))?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn array(rows: &[PredictedRow<'_>], classes: usize) -> Vec<u8> {
    let members = |row: &PredictedRow<'_>| -> Vec<f32> {
        let member = |set: &Vec<usize>| -> Vec<f32> {
            (0..classes)
                .map(|class| f32::from(u8::from(set.contains(&class))))
                .collect()
        };
        row.set.as_ref().map_or_else(Vec::new, member)
    };
    let values: Vec<f32> = rows
        .iter()
        .flat_map(|row| numbers(row).chain(members(row)))
        .collect();
    npy::f32_bytes(&[rows.len(), values.len() / rows.len().max(1)], &values)
}

/// The probabilities, the three uncertainties, and the score if there is one.
fn numbers<'a>(row: &'a PredictedRow<'_>) -> impl Iterator<Item = f32> + 'a {
    let uncertainties = [
        row.predictive_entropy,
        row.expected_entropy,
        row.mutual_information,
    ];
    let score = row.score;
    row.probabilities
        .iter()
        .copied()
        .chain(uncertainties)
        .chain(score)
}
