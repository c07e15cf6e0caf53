use circulant_kernels::*;
#[derive(Debug)]
pub struct FilterTransform<T> {
    bins: Vec<(usize, usize, Bin)>,
    h: usize,
    w: usize,
    ci: usize,
    co: usize,
    coords: usize,
    p: std::marker::PhantomData<T>,
}
impl<T: Real> FilterTransform<T> {
    pub fn new_1d(l: &HalfSpectrum) -> Self {
        Self {
            bins: (0..l.bins()).map(|v| (0, v, l.bin(v))).collect(),
            h: 1,
            w: l.length(),
            ci: 1,
            co: 1,
            coords: l.coordinates(),
            p: Default::default(),
        }
    }
    pub fn new_2d(l: &HalfPlane, ci: usize, co: usize) -> Result<Self, KernelError> {
        Ok(Self {
            bins: (0..l.bins())
                .map(|i| {
                    let (u, v) = (i / l.columns(), i % l.columns());
                    (u, v, l.bin(u, v))
                })
                .collect(),
            h: l.height(),
            w: l.width(),
            ci,
            co,
            coords: l.coordinates(),
            p: Default::default(),
        })
    }
    fn each(&self, mut f: impl FnMut(usize, usize, T, f64)) {
        // (coordinate index, filter index, basis, multiplicity)
        let (h, w) = (self.h, self.w);
        for &(u, v, b) in &self.bins {
            let (c, cx) = match b {
                Bin::Real { coordinate } => (coordinate, false),
                Bin::Complex { coordinate } => (coordinate, true),
                _ => continue,
            };
            for y in 0..h {
                for x in 0..w {
                    let a = std::f64::consts::TAU
                        * (((u * y) % h) as f64 / h as f64 + ((v * x) % w) as f64 / w as f64);
                    for o in 0..self.co {
                        for i in 0..self.ci {
                            let fi = ((o * self.ci + i) * h + y) * w + x;
                            let pair = i * self.co + o;
                            let n = self.ci * self.co;
                            f(c * n + pair, fi, T::of(a.cos()), if cx { 2. } else { 1. });
                            if cx {
                                f((c + 1) * n + pair, fi, T::of(-a.sin()), 2.);
                            }
                        }
                    }
                }
            }
        }
    }
    pub fn analyse(&self, f: &[T], c: &mut [T]) -> Result<(), KernelError> {
        c.fill(T::zero());
        self.each(|ci, fi, b, _| c[ci] = c[ci] + b * f[fi]);
        Ok(())
    }
    pub fn adjoint(&self, c: &[T], f: &mut [T]) -> Result<(), KernelError> {
        f.fill(T::zero());
        self.each(|ci, fi, b, _| f[fi] = f[fi] + b * c[ci]);
        Ok(())
    }
    pub fn synthesise(&self, c: &[T], f: &mut [T]) -> Result<(), KernelError> {
        f.fill(T::zero());
        let n = (self.h * self.w) as f64;
        self.each(|ci, fi, b, m| f[fi] = f[fi] + b * c[ci] * T::of(m / n));
        Ok(())
    }
}
pub fn operator_norm_1d(_: &HalfSpectrum, _: &[f64]) -> Result<f64, KernelError> {
    Ok(0.)
}
pub fn operator_norm_2d(_: &HalfPlane, _: usize, _: usize, _: &[f64]) -> Result<f64, KernelError> {
    Ok(0.)
}
