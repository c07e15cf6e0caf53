//! The dominant eigenvalue of a symmetric matrix that is known by its products with vectors.
//!
//! Lanczos: `Q` spans the Krylov space of a random start, every new vector is made orthogonal to all others twice, and the
//! eigenpairs `(theta, s)` of `Q^t A Q` give the Ritz pairs `(theta, y = Q s)` with the residual
//! `norm(A y - theta y) = beta abs(s_last)`, `beta` the norm of what a product adds to the space. When the space is full, a
//! third of it is kept: the best Ritz vectors, whose residuals all point along the next vector (thick restart; Wu and Simon,
//! 2000).
//!
//! The answer is checked by one more product: `value = y^t A y`, and a symmetric matrix has an eigenvalue within
//! `residual = norm(A y - value y)` of it. With the distance `gap` to all other eigenvalues it is even within
//! `residual^2/gap`. That it is the dominant one is likely, not certain: the start is random.

use faer::{Mat, Side};

use super::CurvatureError;
use super::step::norm;
use crate::nn::InitialNumbers;

/// How the eigenvalue is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Lanczos with full reorthogonalisation; `basis` vectors (4 at least) are held in memory.
    Lanczos {
        /// The largest number of vectors.
        basis: usize,
    },
    /// Power iteration: two vectors in memory, many more products; two eigenvalues of nearly the same magnitude stop it.
    Power,
}

/// Settings of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EigenvalueConfig {
    /// The method.
    pub method: Method,
    /// The residual at which the search stops, relative to the eigenvalue.
    pub tolerance: f64,
    /// The search stops after this many products in any case; 2 at least.
    pub max_products: usize,
    /// The seed of the start vector.
    pub seed: u64,
}

impl Default for EigenvalueConfig {
    /// Lanczos with 32 vectors, residual `1e-4`, 200 products.
    fn default() -> Self {
        Self {
            method: Method::Lanczos { basis: 32 },
            tolerance: 1e-4,
            max_products: 200,
            seed: 0,
        }
    }
}

/// An estimate of the dominant eigenvalue.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Eigenvalue {
    /// The Rayleigh quotient of [`Self::vector`].
    pub value: f64,
    /// An eigenvalue lies within this distance of the value, up to the error of the products.
    pub residual: f64,
    /// The number of products made.
    pub products: usize,
    /// Whether the residual is below the tolerance times the value.
    pub converged: bool,
    /// The eigenvector, of norm 1.
    pub vector: Vec<f64>,
}

/// Which end of the spectrum is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extreme {
    Magnitude,
    Largest,
}

impl Extreme {
    fn key(self, value: f64) -> f64 {
        match self {
            Self::Magnitude => value.abs(),
            Self::Largest => value,
        }
    }
}

/// The dominant eigenvalue of the matrix of `size` rows whose products `product` makes.
pub(super) fn dominant(
    size: usize,
    extreme: Extreme,
    config: &EigenvalueConfig,
    mut product: impl FnMut(&[f64]) -> Result<Vec<f64>, CurvatureError>,
) -> Result<Eigenvalue, CurvatureError> {
    let setting = |what, expected, got| {
        Err(CurvatureError::Setting {
            what,
            expected,
            got,
        })
    };
    if !(config.tolerance > 0.0 && config.tolerance < 1.0) {
        let got = config.tolerance;
        return setting("the tolerance of the eigenvalue", "in (0, 1)", got);
    }
    if config.max_products < 2 {
        let got = config.max_products as f64;
        return setting("the number of products", "at least 2", got);
    }
    let mut start = InitialNumbers::new(config.seed).normal(size, 1.0);
    let length = norm(&start);
    scale(&mut start, length.recip());
    let (vector, products) = match config.method {
        Method::Power => power(start, config, &mut product)?,
        Method::Lanczos { basis } if basis < 4 => {
            return setting("the basis of Lanczos", "at least 4", basis as f64);
        }
        Method::Lanczos { basis } => {
            let capacity = basis.min(size);
            Lanczos::new(extreme, capacity).run(start, config, &mut product)?
        }
    };
    let image = product(&vector)?;
    let value = dot(&vector, &image);
    let residual = residual(&vector, &image, value);
    Ok(Eigenvalue {
        value,
        residual,
        products: products + 1,
        converged: residual <= config.tolerance * value.abs(),
        vector,
    })
}

/// Iterations stop a little before the tolerance, so that the check afterwards agrees.
const MARGIN: f64 = 0.5;

fn power(
    mut vector: Vec<f64>,
    config: &EigenvalueConfig,
    product: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, CurvatureError>,
) -> Result<(Vec<f64>, usize), CurvatureError> {
    let most = config.max_products - 1;
    for products in 1..=most {
        let mut image = product(&vector)?;
        let value = dot(&vector, &image);
        let size = norm(&image);
        let done = residual(&vector, &image, value) <= MARGIN * config.tolerance * value.abs();
        if done || size == 0.0 {
            return Ok((vector, products));
        }
        scale(&mut image, size.recip());
        vector = image;
    }
    Ok((vector, most))
}

struct Lanczos {
    extreme: Extreme,
    capacity: usize,
    basis: Vec<Vec<f64>>,
    /// `Q^t A Q`, row by row.
    projected: Vec<Vec<f64>>,
}

/// A Ritz pair in the coordinates of the basis.
struct Ritz {
    value: f64,
    coordinates: Vec<f64>,
}

impl Lanczos {
    fn new(extreme: Extreme, capacity: usize) -> Self {
        Self {
            extreme,
            capacity,
            basis: Vec::new(),
            projected: Vec::new(),
        }
    }

    fn run(
        mut self,
        start: Vec<f64>,
        config: &EigenvalueConfig,
        product: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, CurvatureError>,
    ) -> Result<(Vec<f64>, usize), CurvatureError> {
        let (size, most) = (start.len(), config.max_products - 1);
        let mut next = start;
        let mut products = 0;
        loop {
            let mut image = product(&next)?;
            products += 1;
            self.basis.push(next);
            let column = self.orthogonalise(&mut image);
            self.extend(column);
            let beta = norm(&image);
            let pairs = self.ritz_pairs()?;
            let best = &pairs[0];
            let last = best.coordinates[self.basis.len() - 1];
            let small = beta * last.abs() <= MARGIN * config.tolerance * best.value.abs();
            if small || beta == 0.0 || self.basis.len() == size || products == most {
                let mut vector = self.combined(&best.coordinates);
                let length = norm(&vector);
                scale(&mut vector, length.recip());
                return Ok((vector, products));
            }
            if self.basis.len() == self.capacity {
                self.restart(&pairs[..self.capacity / 3 + 1]);
            }
            scale(&mut image, beta.recip());
            // What is left may be mostly rounding: without this, a restarted basis loses its orthogonality.
            self.orthogonalise(&mut image);
            let length = norm(&image);
            scale(&mut image, length.recip());
            next = image;
        }
    }

    /// Subtracts from `vector` its projection on the basis, twice, and gives the coordinates of that.
    fn orthogonalise(&self, vector: &mut [f64]) -> Vec<f64> {
        let mut coordinates = vec![0.0; self.basis.len()];
        for _ in 0..2 {
            for (coordinate, q) in coordinates.iter_mut().zip(&self.basis) {
                let part = dot(q, vector);
                *coordinate += part;
                add(vector, -part, q);
            }
        }
        coordinates
    }

    /// One more row and column of the projected matrix.
    fn extend(&mut self, column: Vec<f64>) {
        for (row, value) in self.projected.iter_mut().zip(&column) {
            row.push(*value);
        }
        self.projected.push(column);
    }

    /// The eigenpairs of the projected matrix, best first.
    fn ritz_pairs(&self) -> Result<Vec<Ritz>, CurvatureError> {
        let size = self.basis.len();
        let matrix = Mat::from_fn(size, size, |i, j| self.projected[i][j]);
        let eigen = matrix
            .self_adjoint_eigen(Side::Lower)
            .map_err(|_| CurvatureError::Projected { size })?;
        let pair = |k: usize| Ritz {
            value: eigen.S()[k],
            coordinates: (0..size).map(|i| eigen.U()[(i, k)]).collect(),
        };
        let mut pairs: Vec<Ritz> = (0..size).map(pair).collect();
        let key = |pair: &Ritz| self.extreme.key(pair.value);
        pairs.sort_by(|a, b| key(b).total_cmp(&key(a)));
        Ok(pairs)
    }

    fn combined(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.basis[0].len()];
        for (coordinate, q) in coordinates.iter().zip(&self.basis) {
            add(&mut sum, *coordinate, q);
        }
        sum
    }

    /// Goes on with the span of these Ritz vectors. Their couplings to the next vector come with its product.
    fn restart(&mut self, kept: &[Ritz]) {
        let basis = kept.iter().map(|pair| self.combined(&pair.coordinates));
        self.basis = basis.collect();
        let diagonal = |(i, pair): (usize, &Ritz)| {
            let mut row = vec![0.0; kept.len()];
            row[i] = pair.value;
            row
        };
        self.projected = kept.iter().enumerate().map(diagonal).collect();
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(sum: &mut [f64], factor: f64, values: &[f64]) {
    let both = sum.iter_mut().zip(values);
    both.for_each(|(sum, value)| *sum += factor * value);
}

fn scale(values: &mut [f64], factor: f64) {
    values.iter_mut().for_each(|value| *value *= factor);
}

/// `norm(A y - value y)`.
fn residual(vector: &[f64], image: &[f64], value: f64) -> f64 {
    let both = image.iter().zip(vector);
    let difference: Vec<f64> = both.map(|(image, y)| image - value * y).collect();
    norm(&difference)
}

#[cfg(test)]
#[path = "eigen_tests.rs"]
mod tests;
