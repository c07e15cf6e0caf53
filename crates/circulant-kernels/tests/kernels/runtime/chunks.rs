use circulant_kernels::runtime::chunks::*;

#[test]
fn results_come_in_the_order_of_the_jobs() {
    for numbers in [0, SEQUENTIAL_BELOW] {
        let doubled = run_all(numbers, 0..1000, |job| 2 * job);
        assert!(doubled.into_iter().eq((0..1000).map(|job| 2 * job)));
    }
}

#[test]
fn a_chunk_has_at_least_one_row() {
    assert_eq!(rows_per_chunk(1), CHUNK);
    assert_eq!(rows_per_chunk(CHUNK + 1), 1);
    assert_eq!(rows_per_chunk(0), CHUNK);
}
