use circulant_kernels::runtime::scratch::*;

#[test]
fn scratch_is_aligned_and_of_the_asked_length() {
    assert!(Scratch::<f32>::take(0).is_empty());
    for len in [1, 7, 1000] {
        let scratch = Scratch::<f32>::take(len);
        assert_eq!(scratch.len(), len);
        assert_eq!(scratch.as_ptr() as usize % ALIGNMENT, 0);
    }
}
