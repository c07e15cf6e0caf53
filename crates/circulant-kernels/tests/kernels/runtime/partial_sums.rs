use circulant_kernels::runtime::partial_sums::*;

#[test]
fn parts_are_added_by_column() {
    for columns in [1, 7, 64, 65, 200] {
        let stride = columns + 3;
        let parts: Vec<f32> = (0..5 * stride).map(|i| i as f32).collect();
        let mut out = vec![-1.0; columns];
        add_parts(&parts, stride, 2, &mut out);
        for (j, sum) in out.iter().enumerate() {
            let expected: f32 = (0..5).map(|p| parts[p * stride + 2 + j]).sum();
            assert_eq!(*sum, expected);
        }
    }
}

#[test]
fn a_chunk_has_a_few_rows() {
    assert_eq!(rows_per_sum(1), ROWS);
    assert_eq!(rows_per_sum(512), 64);
    assert_eq!(rows_per_sum(1 << 20), 4);
}
