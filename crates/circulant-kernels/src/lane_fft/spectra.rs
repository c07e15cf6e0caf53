//! What is done to spectra: the product with a filter, and both gradients of it.
//!
//! `unsafe`: see the module above.

use std::ops::Range;

use super::columns::MAX_LANES;
use crate::butterfly::Complexes;
use crate::real::Real;
use crate::simd::Vector;

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
        V::call(
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

/// `sums (+)= conj(x)*gradient` and `out (+)= conj(h)*gradient`. With one filter, `out` may be the gradient itself.
pub struct Adjoint<T> {
    pub(crate) x: *const T,
    pub(crate) gradient: *const T,
    pub(crate) h: *const T,
    /// With whether to add to what is there.
    pub(crate) sums: Option<(*mut T, bool)>,
    pub(crate) out: Option<(*mut T, bool)>,
    /// Receives the gradient at frequency 0, `2*LANES` numbers: the sums of the rows.
    pub(crate) row_sums: *mut [T; 2 * MAX_LANES],
}

impl<T: Real> Adjoint<T> {
    #[inline(always)]
    pub(super) unsafe fn run<V: Vector<Scalar = T>>(&self, slots: Range<usize>) {
        if slots.start == 0 {
            // SAFETY: slot 0 holds an entry, and there is room for the widest one.
            unsafe { Complexes::<V>::load(self.gradient).store(self.row_sums.cast()) };
        }
        V::call(
            #[inline(always)]
            || {
                for slot in slots {
                    let at = slot * 2 * V::LANES;
                    // SAFETY: every pointer but `h` holds these slots, `h` a complex number for each.
                    unsafe {
                        let w: Complexes<V> = Complexes::load(self.gradient.add(at));
                        if let Some((sums, add)) = self.sums {
                            let z: Complexes<V> = Complexes::load(self.x.add(at));
                            let sum = if add {
                                Complexes::load(sums.add(at))
                            } else {
                                Complexes::splat(T::zero(), T::zero())
                            };
                            Complexes {
                                re: z.im.mul_add(w.im, z.re.mul_add(w.re, sum.re)),
                                im: z.im.neg_mul_add(w.re, z.re.mul_add(w.im, sum.im)),
                            }
                            .store(sums.add(at));
                        }
                        if let Some((out, add)) = self.out {
                            let (re, im) = (*self.h.add(2 * slot), *self.h.add(2 * slot + 1));
                            let mut product = w.mul(Complexes::splat(re, -im));
                            if add {
                                product = product.add(Complexes::load(out.add(at)));
                            }
                            product.store(out.add(at));
                        }
                    }
                }
            },
        );
    }
}
