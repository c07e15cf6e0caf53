//! Which frequencies have a matrix of their own, and where the transform puts them.

use circulant_core::Bin;

/// A free bin with the positions of its frequency and of the opposite one.
#[derive(Debug, Clone, Copy)]
pub struct Frequency {
    pub(crate) coordinate: usize,
    pub(crate) position: usize,
    /// `None` for a self-conjugate bin, whose matrix is real.
    pub(crate) mirror: Option<usize>,
}

/// The free frequencies of a grid, and the positions that the mask leaves zero.
pub struct FrequencyTable {
    pub(crate) frequencies: Vec<Frequency>,
    pub(crate) masked: Vec<usize>,
}

impl FrequencyTable {
    /// From the full plane's bins in natural order and the order of the transform.
    pub(crate) fn new(height: usize, width: usize, full: &[Bin], order: &[Option<usize>]) -> Self {
        let mut position_of = vec![0; full.len()];
        for (position, frequency) in order.iter().enumerate() {
            if let Some(frequency) = *frequency {
                position_of[frequency] = position;
            }
        }
        let mut table = Self {
            frequencies: Vec::new(),
            masked: Vec::new(),
        };
        for (index, &bin) in full.iter().enumerate() {
            let position = position_of[index];
            let (u, v) = (index / width, index % width);
            let opposite = (height - u) % height * width + (width - v) % width;
            match bin {
                Bin::Real { coordinate } => {
                    table.frequencies.push(Frequency {
                        coordinate,
                        position,
                        mirror: None,
                    });
                }
                Bin::Complex { coordinate } => {
                    let mirror = Some(position_of[opposite]);
                    table.frequencies.push(Frequency {
                        coordinate,
                        position,
                        mirror,
                    });
                }
                Bin::Conjugate { .. } => {}
                Bin::Masked => table.masked.push(position),
            }
        }
        // In memory order, so that neighbours share pages.
        table
            .frequencies
            .sort_by_key(|frequency| frequency.position);
        table
    }
}
