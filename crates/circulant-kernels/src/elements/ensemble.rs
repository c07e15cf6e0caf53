//! What the members of an ensemble say together, per input:
//! `p = (1/S) sum_s softmax(z_s)`, its entropy `H(p)`, and the mean entropy `(1/S) sum_s H(softmax(z_s))`.

use crate::error::{KernelError, expect_len, rows_of, volume};
use crate::runtime::chunks::{best_isa, each_chunk};
use crate::vector::elementary::Elementary;
use crate::vector::{Kernel, Present, Vector};

/// Inputs per task.
const ROWS: usize = 64;

/// The statistics of `logits: [members, rows, classes]`, written to `probabilities: [rows, classes]`,
/// `predictive_entropy: [rows]` and `expected_entropy: [rows]`, in nats.
///
/// ```
/// use circulant_kernels::ensemble_statistics;
///
/// // Two members, sure of opposite classes: together they know nothing, each of them is certain.
/// let (mut p, mut total, mut expected) = ([0.0; 2], [0.0], [0.0]);
/// ensemble_statistics(&[50.0, 0.0, 0.0, 50.0], 1, 2, &mut p, &mut total, &mut expected)?;
/// assert!((p[0] - 0.5).abs() < 1e-6 && (total[0] - 2.0_f32.ln()).abs() < 1e-6 && expected[0] < 1e-6);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn ensemble_statistics(
    logits: &[f32],
    rows: usize,
    classes: usize,
    probabilities: &mut [f32],
    predictive_entropy: &mut [f32],
    expected_entropy: &mut [f32],
) -> Result<(), KernelError> {
    let unit = volume("the probabilities", &[rows, classes])?;
    expect_len("the probabilities", probabilities.len(), unit)?;
    expect_len("the predictive entropies", predictive_entropy.len(), rows)?;
    expect_len("the expected entropies", expected_entropy.len(), rows)?;
    if rows_of("the logits of the members", logits.len(), unit)? == 0 {
        return Err(KernelError::ZeroSize {
            what: "the number of members",
        });
    }
    let outputs = [
        (probabilities, ROWS * classes),
        (predictive_entropy, ROWS),
        (expected_entropy, ROWS),
    ];
    each_chunk(logits.len(), [], outputs, |part, [], [p, predictive, expected]| {
        let first = part * ROWS * classes;
        let members = logits.chunks_exact(unit);
        let members = members.map(|member| &member[first..first + p.len()]);
        best_isa().run(Part {
            members: members.collect(),
            classes,
            probabilities: p,
            predictive_entropy: predictive,
            expected_entropy: expected,
        });
    });
    Ok(())
}

/// The statistics of at most [`ROWS`] inputs. With `e_k = exp(z_k - max)` and `Z = sum e_k`, the entropy of a member is
/// `H = log Z - sum e_k (z_k - max)/Z`: one logarithm per member and input.
struct Part<'a> {
    /// `[rows, classes]` each.
    members: Vec<&'a [f32]>,
    classes: usize,
    probabilities: &'a mut [f32],
    predictive_entropy: &'a mut [f32],
    expected_entropy: &'a mut [f32],
}

impl Kernel<f32> for Part<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = f32>>(self, _: Present<V>) {
        let (classes, p) = (self.classes, self.probabilities);
        let mut numbers = vec![0.0_f32; 2 * p.len()];
        let (below, weights) = numbers.split_at_mut(p.len());
        let (mut sums, mut moments) = ([1.0_f32; ROWS], [0.0_f32; ROWS]);
        p.fill(0.0);
        self.expected_entropy.fill(0.0);
        for member in &self.members {
            let rows = below.chunks_exact_mut(classes);
            for (below, logits) in rows.zip(member.chunks_exact(classes)) {
                // A plain comparison would pass over NaN, and the result would look like a number.
                let top = logits.iter().fold(f32::NEG_INFINITY, |top, &z| {
                    if z > top || z.is_nan() { z } else { top }
                });
                for (below, z) in below.iter_mut().zip(logits) {
                    *below = z - top;
                }
            }
            for (weight, below) in weights.iter_mut().zip(&*below) {
                *weight = below.exponential();
            }
            let rows = weights
                .chunks_exact(classes)
                .zip(below.chunks_exact(classes));
            for ((weights, below), (sum, moment)) in rows.zip(sums.iter_mut().zip(&mut moments)) {
                (*sum, *moment) = (0.0, 0.0);
                for (weight, below) in weights.iter().zip(below) {
                    *sum += weight;
                    *moment += weight * below;
                }
            }
            let statistics = sums.iter().zip(&moments);
            for (expected, (sum, moment)) in self.expected_entropy.iter_mut().zip(statistics) {
                *expected += sum.logarithm() - moment / sum;
            }
            let rows = p
                .chunks_exact_mut(classes)
                .zip(weights.chunks_exact(classes));
            for ((p, weights), sum) in rows.zip(&sums) {
                let share = 1.0 / sum;
                for (p, weight) in p.iter_mut().zip(weights) {
                    *p += weight * share;
                }
            }
        }
        let count = self.members.len() as f32;
        self.expected_entropy.iter_mut().for_each(|h| *h /= count);
        p.iter_mut().for_each(|p| *p /= count);
        for (entropy, p) in self
            .predictive_entropy
            .iter_mut()
            .zip(p.chunks_exact(classes))
        {
            *entropy = p.iter().map(|&p| entropy_term(p)).sum();
        }
    }
}

/// `-p log p`, 0 where it is far below what a sum of such terms can tell.
#[inline(always)]
fn entropy_term(p: f32) -> f32 {
    if p < f32::MIN_POSITIVE {
        0.0
    } else {
        -p * p.logarithm()
    }
}
