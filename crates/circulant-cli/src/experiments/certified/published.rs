//! Published certified accuracies, for figures and tables.

/// A network that others trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Whose.
    pub name: &'static str,
    /// A name of `data list`.
    data: &'static str,
    radius: f64,
    pub parameters: f64,
    /// The lowest and the highest that is told.
    pub certified: [f64; 2],
}

/// All of them.
static PUBLISHED: [Published; 3] = [
    Published {
        name: "GloRo",
        data: "mnist",
        radius: 0.3,
        parameters: 166_000.0,
        certified: [0.957; 2],
    },
    Published {
        name: "GloRo",
        data: "mnist",
        radius: 1.58,
        parameters: 2e6,
        certified: [0.628; 2],
    },
    Published {
        name: "published, 24 GPU-hours",
        data: "cifar10",
        radius: 36.0 / 255.0,
        parameters: 1.57e6,
        certified: [0.585, 0.635],
    },
];

/// Those for a data set and a radius.
pub fn published(data: &str, radius: f64) -> impl Iterator<Item = &'static Published> {
    let fits = move |row: &&Published| row.data == data && (row.radius - radius).abs() < 1e-3;
    PUBLISHED.iter().filter(fits)
}
