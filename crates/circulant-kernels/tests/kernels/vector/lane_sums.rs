use circulant_kernels::vector::lane_sums::*;

#[test]
fn equals_the_plain_loops() {
    for len in [0, 1, 7, 16, 17, 31, 32, 65, 128, 131] {
        let a: Vec<f64> = (0..len).map(|i| (i * 37 % 101) as f64 - 50.0).collect();
        let b: Vec<f64> = (0..len).map(|i| (i * 53 % 89) as f64 - 40.0).collect();
        // Whole numbers: exact in any order.
        let plain: f64 = a.iter().sum();
        let products: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        let squares: f64 = a.iter().map(|a| (a - 2.0).powi(2)).sum();
        let most = a.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        type V = <f64 as circulant_kernels::vector::RealSimd>::Portable;
        assert_eq!([sum::<_, 16>(&a), sum::<_, 32>(&a)], [plain; 2]);
        assert_eq!([dot::<V, 16>(&a, &b), dot::<V, 32>(&a, &b)], [products; 2]);
        assert_eq!(sum_of_squares::<V, 16>(&a, 2.0), squares);
        assert_eq!(sum_of_squares::<V, 32>(&a, 2.0), squares);
        assert_eq!([largest::<_, 16>(&a), largest::<_, 32>(&a)], [most; 2]);
    }
}
