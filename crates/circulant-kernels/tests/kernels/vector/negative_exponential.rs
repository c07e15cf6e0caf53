use circulant_kernels::real::Real;
use circulant_kernels::vector::Vector;
use circulant_kernels::vector::{Isa, Kernel, Present};

struct All<T>(Vec<T>);

impl<T: Real> Kernel<T> for All<T> {
    type Output = Vec<T>;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(mut self, _: Present<V>) -> Vec<T> {
        for x in &mut self.0 {
            *x = x.exponential_of_negative::<V>();
        }
        self.0
    }
}

fn check<T: Real>(lowest: f64, zero_below: f64) {
    let unit = T::epsilon().wide();
    for isa in Isa::available() {
        let x: Vec<T> = (0..200_000)
            .map(|i| T::of(lowest * f64::from(i) / 2e5))
            .collect();
        for (x, y) in x.iter().zip(isa.run(All(x.clone()))) {
            let exact = x.wide().exp();
            assert!(
                (y.wide() - exact).abs() <= 2.0 * unit * exact,
                "{isa:?}: e^{x:?} = {y:?}"
            );
        }
        let ends = [
            T::of(zero_below),
            T::neg_infinity(),
            T::min_value(),
            T::zero(),
            T::nan(),
        ];
        let y = isa.run(All(ends.to_vec()));
        assert!(y[..3].iter().all(|y| *y == T::zero()));
        assert!(y[3] == T::one() && y[4].is_nan());
    }
}

#[test]
fn accurate_to_two_units_on_every_instruction_set() {
    check::<f32>(-87.3, -87.7);
    check::<f64>(-708.3, -708.8);
}
