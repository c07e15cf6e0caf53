//! What `circulant data info` says of a set.

use std::fmt;

use serde::Serialize;

use super::read::{DataSet, Format};

/// The facts of a set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Where it is from.
    pub source: String,
    /// The format; none for sets that are drawn.
    pub format: Option<Format>,
    /// `[n, channels, height, width]` or `[n, d]`.
    pub shape: Vec<usize>,
    /// The type of the numbers: `u8` or `f32`.
    pub element: &'static str,
    /// The least number, as stored.
    pub min: f32,
    /// The greatest number, as stored.
    pub max: f32,
    /// The classes; empty without labels.
    pub classes: Vec<Class>,
    /// The SHA-256 of shape, numbers and labels.
    pub fingerprint: String,
}

/// One class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Class {
    /// Its label.
    pub label: usize,
    /// Its name, where one is known.
    pub name: Option<String>,
    /// How many examples it has.
    pub count: usize,
}

impl Summary {
    /// Looks at every number once.
    pub fn of(set: &DataSet, format: Option<Format>) -> Self {
        let labels = set.labels();
        let counts = match labels.values {
            Some(_) => labels.counts(),
            None => Vec::new(),
        };
        let class = |(label, count)| Class {
            label,
            name: labels.names.get(label).cloned(),
            count,
        };
        let (min, max) = set.range();
        Self {
            source: set.source().to_owned(),
            format,
            shape: set.shape(),
            element: set.element(),
            min,
            max,
            classes: counts.into_iter().enumerate().map(class).collect(),
            fingerprint: set.fingerprint().to_string(),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "source       {}", self.source)?;
        if let Some(format) = self.format {
            writeln!(f, "format       {format}")?;
        }
        let axes = match self.shape.len() {
            4 => "examples, channels, height, width",
            _ => "examples, features",
        };
        writeln!(f, "shape        {:?} ({axes})", self.shape)?;
        writeln!(
            f,
            "numbers      {}, {} to {}",
            self.element, self.min, self.max
        )?;
        writeln!(f, "fingerprint  {}", self.fingerprint)?;
        if self.classes.is_empty() {
            return writeln!(f, "classes      none: the set has no labels");
        }
        writeln!(f, "classes      {}", self.classes.len())?;
        for class in &self.classes {
            let name = class.name.as_deref().unwrap_or("");
            writeln!(f, "{:>12} {:>9}  {name}", class.label, class.count)?;
        }
        Ok(())
    }
}
