//! What is done to spectra: the product with a filter, and both gradients of it.
//!
//! `unsafe`: see the module above.

use std::ops::Range;

use crate::real::Real;
use crate::transform::butterfly::Complexes;
use crate::vector::{MAX_LANES, Present, Tile, Vector};

/// The most lanes of a tile.
const MAX_TILE: usize = 8;

/// A spectrum times a filter.
pub struct Product<T> {
    pub(crate) spectrum: *const T,
    /// One complex number per slot.
    pub(crate) h: *const T,
}

impl<T: Real> Product<T> {
    /// `block = spectrum*h` in some slots; the two may be the same memory.
    #[inline(always)]
    pub(super) unsafe fn run<V: Vector<Scalar = T>>(&self, slots: Range<usize>, block: *mut T) {
        // SAFETY: see the head of the module: the instruction set is there.
        let there = unsafe { Present::<V>::promised() };
        there.call(
            #[inline(always)]
            || {
                for slot in slots {
                    let at = slot * 2 * V::LANES;
                    // SAFETY: spectrum and block hold these slots, and `h` a number for each.
                    unsafe {
                        let h = Complexes::splat(*self.h.add(2 * slot), *self.h.add(2 * slot + 1));
                        let x: Complexes<V> = Complexes::load(self.spectrum.add(at));
                        x.mul(h).store(block.add(at));
                    }
                }
            },
        );
    }
}

/// `sums += conj(x)*gradient`, summed over the lanes, and `out (+)= conj(h)*gradient`. With one filter, `out` may be the gradient itself.
pub struct Adjoint<T> {
    pub(crate) x: *const T,
    pub(crate) gradient: *const T,
    pub(crate) h: *const T,
    /// One complex number per slot.
    pub(crate) sums: Option<*mut T>,
    /// With whether to add to what is there.
    pub(crate) out: Option<(*mut T, bool)>,
    /// Receives the gradient at frequency 0, `2*LANES` values: the sums of the rows.
    pub(crate) row_sums: *mut [T; 2 * MAX_LANES],
}

impl<T: Real> Adjoint<T> {
    #[inline(always)]
    pub(super) unsafe fn run<V: Vector<Scalar = T>>(&self, slots: Range<usize>) {
        if slots.start == 0 {
            // SAFETY: slot 0 holds an entry, and there is room for the widest one.
            unsafe { Complexes::<V>::load(self.gradient).store(self.row_sums.cast()) };
        }
        // SAFETY: see the head of the module: the instruction set is there.
        let there = unsafe { Present::<V>::promised() };
        there.call(
            #[inline(always)]
            || {
                // As many slots as fill a tile with their sums.
                let group = V::Tile::LANES / 2;
                let whole = slots.start + slots.len() / group * group;
                for slot in (slots.start..whole).step_by(group) {
                    // SAFETY: these slots are the caller's.
                    unsafe { self.group::<V>(slot, group) };
                }
                for slot in whole..slots.end {
                    // SAFETY: as above.
                    unsafe { self.group::<V>(slot, 1) };
                }
            },
        );
    }

    /// `count` slots from `slot` on, at most half as many as a tile has lanes.
    #[inline(always)]
    unsafe fn group<V: Vector<Scalar = T>>(&self, slot: usize, count: usize) {
        const { assert!(V::Tile::LANES <= MAX_TILE) };
        // SAFETY: see the head of the module.
        let mut parts = [unsafe { V::splat(T::zero()) }.folded(); MAX_TILE];
        for i in 0..count {
            let at = (slot + i) * 2 * V::LANES;
            // SAFETY: every pointer but `h` and `sums` holds this slot's entry, `h` a complex number for it.
            unsafe {
                let w: Complexes<V> = Complexes::load(self.gradient.add(at));
                if self.sums.is_some() {
                    let z: Complexes<V> = Complexes::load(self.x.add(at));
                    parts[2 * i] = z.im.mul_add(w.im, z.re.mul(w.re)).folded();
                    parts[2 * i + 1] = z.im.neg_mul_add(w.re, z.re.mul(w.im)).folded();
                }
                if let Some((out, add)) = self.out {
                    let h = self.h.add(2 * (slot + i));
                    let mut product = w.mul(Complexes::splat(*h, -*h.add(1)));
                    if add {
                        product = product.add(Complexes::load(out.add(at)));
                    }
                    product.store(out.add(at));
                }
            }
        }
        let Some(sums) = self.sums else { return };
        let total = V::Tile::sums(
            #[inline(always)]
            |i| parts[i],
        );
        // SAFETY: `sums` holds a complex number for each of these slots, and a whole group fills a tile.
        unsafe {
            let to = sums.add(2 * slot);
            if 2 * count == V::Tile::LANES {
                total.add(V::Tile::load(to)).store(to);
            } else {
                let mut few = [T::zero(); MAX_TILE];
                total.store(few.as_mut_ptr());
                for (i, &sum) in few[..2 * count].iter().enumerate() {
                    *to.add(i) = *to.add(i) + sum;
                }
            }
        }
    }
}
