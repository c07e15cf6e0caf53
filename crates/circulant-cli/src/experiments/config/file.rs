//! `config.toml`: settings from a file and into one, whatever version wrote it, and how two runs differ.

use std::path::Path;

use anyhow::{Context, bail};

use super::{Draw, RunConfig};
use crate::experiments::version::{self, VERSION};

impl RunConfig {
    /// Reads a TOML file; what it leaves out has its default.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        Ok(Self::parse(path)?.0)
    }

    /// Reads a TOML file; what it leaves out is as in `base`.
    pub fn read_over(path: &Path, base: &Self) -> anyhow::Result<Self> {
        let (_, _, found) = Self::parse(path)?;
        let mut table = base.table();
        overlay(&mut table, found);
        let config: Self = table.try_into()?;
        config
            .check()
            .with_context(|| format!("{} cannot be used", path.display()))?;
        Ok(config)
    }

    /// The settings, and the file's own version and entries.
    fn parse(path: &Path) -> anyhow::Result<(Self, u32, toml::Table)> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the settings {}", path.display()))?;
        Self::parse_text(&text, path)
    }

    fn parse_text(text: &str, path: &Path) -> anyhow::Result<(Self, u32, toml::Table)> {
        let version = version::of_toml(text, path)?;
        let unknown = || format!("{} has settings that are not understood", path.display());
        let config: Self = toml::from_str(text).with_context(unknown)?;
        let found = toml::from_str(text).with_context(unknown)?;
        let config = Self {
            version: VERSION,
            ..config
        };
        Ok((config, version, found))
    }

    /// Reads a TOML file that must say everything that its version knows: a setting that was lost must not silently have its
    /// default. A setting that came later has the value that older versions worked by.
    pub fn read_complete(path: &Path) -> anyhow::Result<Self> {
        let (mut config, version, found) = Self::parse(path)?;
        let lost = differences(&config.table(), &found)
            .into_iter()
            .find(|difference| {
                let since = SINCE.iter().find(|(name, _)| *name == difference.name);
                difference.other.is_none() && since.is_none_or(|&(_, since)| since <= version)
            });
        if let Some(lost) = lost {
            bail!(
                "{} is damaged: the setting {} is missing; put a whole copy back, or train again",
                path.display(),
                lost.name
            );
        }
        if version < 2 && (config.data.first.is_some() || config.data.validation > 0) {
            config.data.draw = Draw::of_0_1_0();
        }
        config
            .check()
            .with_context(|| format!("{} cannot be used", path.display()))?;
        Ok(config)
    }

    /// All of it as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("settings are numbers, words and tables")
    }

    fn table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("settings are a table")
    }

    /// The settings that another run has otherwise.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (own, other) = (self.table(), other.table());
        let mut found = differences(&own, &other);
        // What only the other one has.
        let turned = differences(&other, &own).into_iter();
        found.extend(
            turned
                .filter(|only| only.other.is_none())
                .map(|only| Difference {
                    name: only.name,
                    own: None,
                    other: only.own,
                }),
        );
        found
    }
}

/// Entries of `found` take the place of those of `table`, table by table.
fn overlay(table: &mut toml::Table, found: toml::Table) {
    for (key, value) in found {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(own)), toml::Value::Table(found)) => overlay(own, found),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// Settings that files of older versions lack, and the version that they came with.
const SINCE: [(&str, u32); 2] = [("version", 2), ("data.draw", 2)];

/// A setting with two values; none where it is not set.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// With its table, as `training.seed`.
    pub name: String,
    /// On this side.
    pub own: Option<String>,
    /// On the other side.
    pub other: Option<String>,
}

/// The settings of `own` that `other` lacks or has otherwise.
fn differences(own: &toml::Table, other: &toml::Table) -> Vec<Difference> {
    let mut found = Vec::new();
    for (key, value) in own {
        let there = other.get(key);
        if let (toml::Value::Table(own), Some(toml::Value::Table(other))) = (value, there) {
            found.extend(differences(own, other).into_iter().map(|inner| Difference {
                name: format!("{key}.{}", inner.name),
                ..inner
            }));
        } else if there != Some(value) {
            found.push(Difference {
                name: key.clone(),
                own: Some(value.to_string()),
                other: there.map(toml::Value::to_string),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::option::of;
    use proptest::prelude::*;

    use super::*;
    use crate::experiments::config::{ModelConfig, ModelKind};
    use circulant_data::Normalisation;

    prop_compose! {
        /// Settings that a run can have.
        fn settings()(
            (steps, batch, seed) in (1..=u64::MAX >> 1, 1..10_000_usize, 0..=u64::MAX >> 1),
            (rate, weight) in (1e-300..1e300_f64, 0.0..10.0_f64),
            (share, limit) in (of(0.0..=1.0_f64), of(1e-9..1e9_f64)),
            kind in proptest::sample::select(&ModelKind::ALL[..]),
            (channels, size, first) in (of(1..99_usize), of([1..4096_usize, 1..4096]), of(1..99_usize)),
            (name, train, learned) in (of(".*"), ".*", any::<bool>()),
        ) -> RunConfig {
            let mut config = RunConfig::default();
            (config.training.steps, config.training.batch, config.training.seed) = (steps, batch, seed);
            (config.training.learning_rate, config.training.kl_weight) = (rate, weight);
            (config.training.final_rate, config.training.norm_limit) = (share, limit);
            (config.model.kind, config.model.channels) = (kind, channels);
            (config.data.size, config.data.first, config.data.label_name) = (size, first, name);
            (config.data.train, config.posterior.learn_slope) = (train, learned);
            config
        }
    }

    proptest! {
        #[test]
        fn all_settings_are_read_as_they_are_written(config in settings(), other in settings()) {
            let place = Path::new("config.toml");
            let (read, version, table) = RunConfig::parse_text(&config.to_toml(), place).unwrap();
            prop_assert_eq!(&read, &config);
            prop_assert_eq!(version, VERSION);
            prop_assert!(differences(&config.table(), &table).is_empty());
            prop_assert!(read.check().is_ok());
            prop_assert_eq!(config.differences(&other).is_empty(), config == other);
        }

        #[test]
        fn damaged_settings_are_refused_or_read(config in settings(), cut in any::<prop::sample::Index>(), with in ".{0,3}") {
            let mut text = config.to_toml();
            let mut at = cut.index(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, &with);
            // Whatever it is, it is an error or settings, never a panic.
            if let Ok((config, _, _)) = RunConfig::parse_text(&text, Path::new("config.toml")) {
                config.check().ok();
            }
        }
    }

    #[test]
    fn settings_survive_a_file() {
        let mut config = RunConfig::default();
        config.model.channels = Some(3);
        config.training.norm_limit = Some(2.5);
        config.data.normalisation = Normalisation::Standard {
            mean: vec![0.5],
            std: vec![0.25],
        };
        assert_eq!(
            toml::from_str::<RunConfig>(&config.to_toml()).unwrap(),
            config
        );
        let part: RunConfig = toml::from_str("[training]\nsteps = 7").unwrap();
        assert_eq!(part.training.steps, 7);
        assert_eq!(part.model, ModelConfig::default());
    }
}
