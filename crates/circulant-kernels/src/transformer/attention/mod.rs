//! Multi-head attention for training, `O = dropout(softmax(s Q K^T)) V` per batch entry and head with
//! `s = 1/sqrt(head_dim)`, and its gradients.
//!
//! `Q`, `K`, `V`, `O` and their gradients are `[batch, tokens, heads*head_dim]`; a head is a block of
//! columns, read and written where it is. Forward keeps the logarithm of the sum of every softmax
//! row, `L`, as `[batch, heads, tokens]`; the weights `P = exp(s Q K^T - L)` are computed again in
//! the backward pass. To keep `P` itself would make both passes together 5 to 8 percent faster
//! (measured with 65 tokens and memory that is mapped already) and cost twice the memory of an
//! input per layer, more for longer sequences. With the mask `M` of the dropout, its factor
//! included, the gradient `G` of `O`, and `D = sum_j P dP` of a row:
//!
//! `dV = (P M)^T G`, `dP = M (G V^T)`, `dS = P (dP - D)`, `dQ = s dS K`, `dK = s dS^T Q`.
//!
//! One job is one head of one batch entry. Its matrices stay in the L1 and L2 caches, and no two jobs
//! write the same number, so results do not depend on the number of threads.
//!
//! `unsafe`: heads are written through pointers because the columns of different heads lie between
//! each other. A job writes columns `head*head_dim..(head + 1)*head_dim` of the rows of its batch
//! entry, and there is one job per head and batch entry.

mod backward;
mod blocks;
mod forward;

pub use backward::HeadBackward;
pub use forward::HeadForward;

use crate::error::{KernelError, expect_len, expect_positive, rows_of, volume};
use crate::real::Real;
use crate::runtime::chunks::{best_isa, each, each_chunk};
use crate::runtime::scratch::Scratch;
use crate::transformer::dropout::{Dropout, GROUP};
use crate::vector::{Isa, Promised, prefetch};

/// The sizes of an attention layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attention {
    tokens: usize,
    heads: usize,
    head_dim: usize,
}

/// Queries, keys and values, or their gradients.
#[derive(Debug, Clone, Copy)]
pub struct QueryKeyValue<S> {
    /// The queries.
    pub query: S,
    /// The keys.
    pub key: S,
    /// The values.
    pub value: S,
}

impl Attention {
    /// Sequences of `tokens` tokens, `heads` heads of `head_dim` values.
    pub fn new(tokens: usize, heads: usize, head_dim: usize) -> Result<Self, KernelError> {
        expect_positive(&[
            ("the number of tokens", tokens),
            ("the number of heads", heads),
            ("the length of a head", head_dim),
        ])?;
        volume("a sequence", &[tokens, heads, head_dim])?;
        volume("the weights of a head", &[tokens, tokens])?;
        Ok(Self {
            tokens,
            heads,
            head_dim,
        })
    }

    /// How many values `L` has for a batch; `usize::MAX` when no memory holds so many.
    pub fn log_sums_len(&self, batch: usize) -> usize {
        volume("the log sums", &[batch, self.heads, self.tokens]).unwrap_or(usize::MAX)
    }

    /// The output and, for the backward pass, the logarithms of the sums.
    pub fn forward<T: Real>(
        &self,
        inputs: QueryKeyValue<&[T]>,
        dropout: Option<Dropout>,
        output: &mut [T],
        log_sums: &mut [T],
    ) -> Result<(), KernelError> {
        self.forward_on(best_isa(), inputs, dropout, output, log_sums)
    }

    #[doc(hidden)]
    pub fn forward_on<T: Real>(
        &self,
        isa: Isa,
        inputs: QueryKeyValue<&[T]>,
        dropout: Option<Dropout>,
        output: &mut [T],
        log_sums: &mut [T],
    ) -> Result<(), KernelError> {
        let jobs = self.expect_sizes(inputs, log_sums.len())?;
        expect_len("the output", output.len(), inputs.query.len())?;
        let output = HeadColumns::new(output);
        let log_sums = [(log_sums, self.tokens)];
        each_chunk(self.values(jobs), [], log_sums, |job, [], [log_sums]| {
            let mut scratch = Scratch::take(forward::scratch_len::<T>(self));
            let job = HeadForward {
                head: self.head(job),
                inputs,
                dropout,
                output,
                log_sums,
                scratch: &mut scratch,
            };
            // SAFETY: the output is as long as the queries; see the head of the file.
            T::attention_forward(isa, unsafe { Promised::new(job) });
        });
        Ok(())
    }

    /// The gradients of the inputs from that of the output; the dropout is that of the forward pass.
    pub fn backward<T: Real>(
        &self,
        inputs: QueryKeyValue<&[T]>,
        dropout: Option<Dropout>,
        log_sums: &[T],
        grad: &[T],
        gradients: QueryKeyValue<&mut [T]>,
    ) -> Result<(), KernelError> {
        self.backward_on(best_isa(), inputs, dropout, log_sums, grad, gradients)
    }

    #[doc(hidden)]
    pub fn backward_on<T: Real>(
        &self,
        isa: Isa,
        inputs: QueryKeyValue<&[T]>,
        dropout: Option<Dropout>,
        log_sums: &[T],
        grad: &[T],
        gradients: QueryKeyValue<&mut [T]>,
    ) -> Result<(), KernelError> {
        let jobs = self.expect_sizes(inputs, log_sums.len())?;
        let expected = inputs.query.len();
        expect_len("the gradient", grad.len(), expected)?;
        expect_len("the gradient of Q", gradients.query.len(), expected)?;
        expect_len("the gradient of K", gradients.key.len(), expected)?;
        expect_len("the gradient of V", gradients.value.len(), expected)?;
        let gradients = QueryKeyValue {
            query: HeadColumns::new(gradients.query),
            key: HeadColumns::new(gradients.key),
            value: HeadColumns::new(gradients.value),
        };
        each(self.values(jobs), jobs, |job| {
            let mut scratch = Scratch::take(backward::scratch_len::<T>(self));
            let job = HeadBackward {
                head: self.head(job),
                inputs,
                dropout,
                log_sums: &log_sums[job * self.tokens..][..self.tokens],
                grad,
                gradients,
                scratch: &mut scratch,
            };
            // SAFETY: the gradients are as long as the queries; see the head of the file.
            T::attention_backward(isa, unsafe { Promised::new(job) });
        });
        Ok(())
    }

    /// Checks everything that both directions read; returns the number of jobs.
    fn expect_sizes<T>(
        &self,
        inputs: QueryKeyValue<&[T]>,
        log_sums: usize,
    ) -> Result<usize, KernelError> {
        let width = self.heads * self.head_dim;
        let got = inputs.query.len();
        let batch = rows_of("Q", got, self.tokens * width)?;
        expect_len("K", inputs.key.len(), got)?;
        expect_len("V", inputs.value.len(), got)?;
        expect_len("the log sums", log_sums, self.log_sums_len(batch))?;
        Ok(batch * self.heads)
    }

    /// Values that so many jobs multiply with others.
    fn values(&self, jobs: usize) -> usize {
        jobs * self.tokens * (self.tokens + self.head_dim)
    }

    fn head(&self, job: usize) -> Head {
        let (entry, head) = (job / self.heads, job % self.heads);
        let width = self.heads * self.head_dim;
        Head {
            tokens: self.tokens,
            dim: self.head_dim,
            width,
            first: entry * self.tokens * width + head * self.head_dim,
            first_group: (job * self.groups()) as u64,
        }
    }

    /// Groups of random numbers of a head: every head begins with one of its own.
    fn groups(&self) -> usize {
        (self.tokens * self.tokens).div_ceil(GROUP)
    }
}

/// Where a head lies in `[batch, tokens, heads*head_dim]`.
#[derive(Debug, Clone, Copy)]
struct Head {
    tokens: usize,
    dim: usize,
    /// Values from a token to the next.
    width: usize,
    /// The first number.
    first: usize,
    /// The first group of random numbers.
    first_group: u64,
}

impl Head {
    /// Asks for the numbers of the next head, which is this thread's next job as a rule: its rows are
    /// short and far apart, which the processor does not foresee by itself.
    #[inline(always)]
    fn prefetch_next<T>(&self, values: &[T]) {
        let last = self.first % self.width + self.dim == self.width;
        // The next head of these tokens, or the first one of the next tokens.
        let skipped = if last {
            (self.tokens - 1) * self.width
        } else {
            0
        };
        let start = values
            .as_ptr()
            .wrapping_add(self.first + self.dim + skipped);
        for token in 0..self.tokens {
            for at in (0..self.dim).step_by(64 / size_of::<T>()) {
                prefetch(start.wrapping_add(token * self.width + at));
            }
        }
    }

    fn scale<T: Real>(&self) -> T {
        T::of(1.0 / (self.dim as f64).sqrt())
    }
}

/// A matrix whose columns are written by different threads.
#[derive(Debug, Clone, Copy)]
pub struct HeadColumns<T> {
    start: *mut T,
}

// SAFETY: jobs write different values (see the head of the file), and the slice that the pointer
// comes from is borrowed until all of them are done.
unsafe impl<T: Send> Send for HeadColumns<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for HeadColumns<T> {}

impl<T> HeadColumns<T> {
    fn new(values: &mut [T]) -> Self {
        Self {
            start: values.as_mut_ptr(),
        }
    }
}
