use circulant_kernels::Real;
use circulant_kernels::vector::*;

struct Arithmetic;

impl Kernel<f32> for Arithmetic {
    type Output = Vec<f32>;
    #[inline(always)]
    fn run<V: Vector<Scalar = f32>>(self, there: Present<V>) -> Vec<f32> {
        let data: Vec<f32> = (0..V::LANES).map(|i| i as f32 - 3.0).collect();
        let mut out = vec![0.0; 9 * V::LANES];
        let two = there.splat(2.0);
        // SAFETY: every slice has at least `LANES` values.
        unsafe {
            let x = V::load(data.as_ptr());
            let results = [
                x.add(two),
                x.sub(two),
                x.mul(two),
                x.div(two),
                x.min(two),
                x.max(two),
                x.mul_add(two, x),
                x.neg_mul_add(two, x),
                x,
            ];
            for (i, y) in results.into_iter().enumerate() {
                y.store(out.as_mut_ptr().add(i * V::LANES));
            }
        }
        out
    }
}

#[test]
fn arithmetic_of_every_instruction_set() {
    for isa in Isa::available() {
        let lanes = isa.lanes::<f32>();
        let out = isa.run(Arithmetic);
        for i in 0..lanes {
            let x = i as f32 - 3.0;
            let expected = [
                x + 2.0,
                x - 2.0,
                x * 2.0,
                x / 2.0,
                x.min(2.0),
                x.max(2.0),
                3.0 * x,
                -x,
                x,
            ];
            for (j, &y) in expected.iter().enumerate() {
                assert_eq!(out[j * lanes + i], y, "{isa:?}, operation {j}, lane {i}");
            }
        }
    }
}

/// What `CIRCULANT_ISA` names is what runs: a check that forces an instruction set checks that one.
#[test]
fn the_environment_chooses_the_instruction_set() {
    let names: Vec<_> = Isa::available().into_iter().map(Isa::name).collect();
    match std::env::var(CHOICE) {
        Ok(choice) => assert_eq!(instruction_set(), choice, "this processor has {names:?}"),
        Err(_) => assert_eq!(instruction_set(), names[names.len() - 1]),
    }
}

struct Transpose<T>(Vec<T>);

impl<T: Real> Kernel<T> for Transpose<T> {
    type Output = (usize, Vec<T>);
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) -> (usize, Vec<T>) {
        let side = <V::Tile as Vector>::LANES;
        let mut out = vec![T::zero(); side * side];
        let to = out.as_mut_ptr();
        // SAFETY: both blocks hold `side*side` values and are different allocations.
        unsafe {
            V::Tile::transpose(
                |i| V::Tile::load(self.0.as_ptr().add(i * side)),
                |j| to.add(j * side),
            );
        }
        (side, out)
    }
}

fn check_transpose<T: Real>() {
    for isa in Isa::available() {
        let numbers: Vec<T> = (0..256).map(|i| T::of(f64::from(i))).collect();
        let (side, out) = isa.run(Transpose(numbers.clone()));
        for i in 0..side {
            for j in 0..side {
                assert_eq!(out[j * side + i], numbers[i * side + j], "{isa:?}");
            }
        }
    }
}

struct Sums<T>(Vec<T>);

impl<T: Real> Kernel<T> for Sums<T> {
    type Output = (Vec<T>, Vec<T>);
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) -> (Vec<T>, Vec<T>) {
        let side = <V::Tile as Vector>::LANES;
        let mut out = vec![T::zero(); side];
        // SAFETY: there are `side` rows of `V::LANES` values each, and room for `side` sums.
        unsafe {
            let row = |i| V::load(self.0.as_ptr().add(i * V::LANES)).folded();
            V::Tile::sums(row).store(out.as_mut_ptr());
        }
        let rows = self.0.chunks_exact(V::LANES).take(side);
        let plain = rows.map(|row| row.iter().fold(T::zero(), |sum, &x| sum + x));
        (out, plain.collect())
    }
}

fn check_sums<T: Real>() {
    for isa in Isa::available() {
        // Whole numbers: exact in any order.
        let numbers = (0..256).map(|i| T::of(f64::from(i * i % 101)));
        let (sums, plain) = isa.run(Sums(numbers.collect()));
        assert_eq!(sums, plain, "{isa:?}");
    }
}

#[test]
fn sums_over_the_lanes_of_every_instruction_set() {
    check_sums::<f32>();
    check_sums::<f64>();
}

#[test]
fn transposition_of_every_instruction_set() {
    check_transpose::<f32>();
    check_transpose::<f64>();
}
