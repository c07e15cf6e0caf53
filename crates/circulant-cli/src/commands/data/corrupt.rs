//! `circulant data corrupt`: the corruptions of CIFAR-10-C for any colour images.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use serde::Serialize;

use super::super::output::{json_line, print};
use super::super::reading::Reading;
use crate::experiments::config::DataConfig;
use crate::experiments::progress::WorkProgress;
use crate::experiments::source;
use crate::files::write;
use circulant_data::corrupt::{Corruption, Severity, contact_sheet, corrupt};
use circulant_data::{ImageSet, Pixels, Split, npy};

/// Corrupt images as CIFAR-10-C does: noise, blur, weather, digital, in five severities.
///
/// Writes the layout of CIFAR-10-C into a folder: NAME.npy with all images at severity 1, then 2, to 5, as bytes [n, height,
/// width, 3], and labels.npy. Whatever reads the published files reads these. --preview draws one sheet of all
/// corruptions instead.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant data corrupt --preview sheet.svg
  circulant data corrupt --data cifar10 --first 1000 --out cifar10-c
  circulant data corrupt --data photos/ --size 64x64 --corruptions fog,snow --out weather")]
pub(super) struct Corrupt {
    /// A data set by name (see `circulant data list`) or a path; colour images.
    #[arg(long, default_value = "cifar10", value_name = "NAME|PATH")]
    data: String,
    /// The part to read, where there are two.
    #[arg(long, value_parser = super::super::flags::split(), default_value_t = Split::Test)]
    split: Split,
    /// Which ones, separated by commas [default: all nineteen].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    corruptions: Vec<Corruption>,
    /// The seed of noise, flakes, drops and the like.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The folder for the files. It must not have files of the same names.
    #[arg(long, value_name = "FOLDER", required_unless_present = "preview")]
    out: Option<PathBuf>,
    /// Draw a sheet of all corruptions and severities into this SVG file.
    #[arg(long, value_name = "FILE.svg")]
    preview: Option<PathBuf>,
    /// Print one JSON object per file.
    #[arg(long)]
    json: bool,
    // Last: its heading holds for all flags that follow.
    #[command(flatten)]
    reading: Reading,
}

/// A file that was written.
#[derive(Serialize)]
struct WrittenFile {
    file: PathBuf,
    images: usize,
}

impl Corrupt {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let mut options = DataConfig::default();
        self.reading.apply(&mut options);
        let set = source::images(&self.data, self.split, &options)?;
        let corruptions = match &self.corruptions[..] {
            [] => &Corruption::ALL,
            some => some,
        };
        let mut rows = Vec::new();
        if let Some(path) = &self.preview {
            let sheet = contact_sheet(&set.first(corruptions.len()), corruptions, self.seed)?;
            write(path, sheet)?;
            rows.push(WrittenFile {
                file: path.clone(),
                images: 5 * corruptions.len(),
            });
        }
        if let Some(folder) = &self.out {
            rows.extend(self.files(&set, corruptions, folder)?);
        }
        for row in rows {
            let line = if self.json {
                json_line(&row)?
            } else {
                format!("{}: {} images\n", row.file.display(), row.images)
            };
            print(&line)?;
        }
        Ok(())
    }

    fn files(
        &self,
        set: &ImageSet,
        corruptions: &[Corruption],
        folder: &PathBuf,
    ) -> anyhow::Result<Vec<WrittenFile>> {
        let file = |name: &str| folder.join(format!("{name}.npy"));
        for name in corruptions.iter().map(|one| one.name()).chain(["labels"]) {
            let path = file(name);
            ensure!(
                !path.exists(),
                "{} is there already; choose another folder with --out",
                path.display()
            );
        }
        // Images that cannot be corrupted are refused before anything is written.
        corrupt(
            &set.first(1),
            Corruption::Brightness,
            Severity::ALL[0],
            self.seed,
        )?;
        let labels = set.labels().required(set.source())?;
        let labels: Result<Vec<u8>, _> = labels.iter().map(|&label| u8::try_from(label)).collect();
        let labels =
            labels.context("the labels of CIFAR-10-C are bytes: expected classes below 256")?;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let [count, channels, height, width] = set.shape();
        let all = Severity::ALL.len() * count;
        write(
            &file("labels"),
            npy::u8_bytes(&[all], &labels.repeat(Severity::ALL.len())),
        )?;
        let mut rows = Vec::new();
        let mut progress = WorkProgress::new("corrupting", (corruptions.len() * all) as u64);
        for &corruption in corruptions {
            let mut bytes = Vec::with_capacity(all * set.row());
            for severity in Severity::ALL {
                let corrupted = corrupt(set, corruption, severity, self.seed)?;
                let Pixels::U8(pixels) = corrupted.pixels() else {
                    unreachable!("corrupted images are bytes");
                };
                for image in pixels.chunks_exact(set.row()) {
                    let plane = height * width;
                    bytes.extend(
                        (0..plane).flat_map(|i| (0..channels).map(move |c| image[c * plane + i])),
                    );
                }
                let done = rows.len() * all + severity.level() * count;
                progress.at(done as u64, || corruption.name().to_owned());
            }
            let path = file(corruption.name());
            write(
                &path,
                npy::u8_bytes(&[all, height, width, channels], &bytes),
            )?;
            rows.push(WrittenFile {
                file: path,
                images: all,
            });
        }
        progress.clear();
        Ok(rows)
    }
}
