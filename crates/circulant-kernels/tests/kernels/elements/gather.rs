use circulant_kernels::elements::gather::*;

#[test]
fn rows_come_in_the_order_asked_for() {
    // Small, and large enough for several threads.
    for (count, length) in [(5, 3), (700, 784)] {
        let matrix: Vec<f32> = (0..count * length).map(|i| i as f32).collect();
        let rows: Vec<usize> = (0..count).map(|i| i * 3 % count).collect();
        let mut out = vec![0.0; count * length];
        gather_rows(&matrix, &rows, &mut out);
        for (row, out) in rows.iter().zip(out.chunks_exact(length)) {
            assert_eq!(out, &matrix[row * length..][..length]);
        }
    }
}

#[test]
fn bytes_become_the_numbers_they_stand_for() {
    let three = [(0.5, 0.25), (0.0, 1.0), (-1.0, 3.0)];
    let scales = [
        (1.0, &[(0.0, 1.0)][..]),
        (255.0, &[(0.0, 1.0)]),
        (255.0, &three),
    ];
    // Small, and large enough for several threads; rows that are no whole number of vectors.
    for (count, plane) in [(3, 5), (700, 261)] {
        let length = 3 * plane;
        let matrix: Vec<u8> = (0..count * length).map(|i| (i * 37 % 256) as u8).collect();
        let rows: Vec<usize> = (0..count).map(|i| i * 2 % count).collect();
        for (divisor, channels) in scales {
            let scale = ByteScale::standardised(divisor, channels).unwrap();
            let (mut out, mut wide) = (vec![0f32; count * length], vec![0f64; count * length]);
            gather_bytes(&matrix, &rows, &scale, &mut out);
            gather_bytes(&matrix, &rows, &scale, &mut wide);
            for (i, (&out, &wide)) in out.iter().zip(&wide).enumerate() {
                let byte = matrix[rows[i / length] * length + i % length];
                let channel = i % length / (length / channels.len());
                let (mean, deviation) = channels[channel];
                let expected = (f32::from(byte) / divisor - mean) / deviation;
                assert_eq!(out, expected);
                assert_eq!(wide, f64::from(expected));
            }
        }
    }
}

#[test]
fn scales_that_give_no_numbers_are_errors() {
    assert!(ByteScale::new(0.0).is_err());
    assert!(ByteScale::new(f32::NAN).is_err());
    assert!(ByteScale::standardised(255.0, &[]).is_err());
    let error = ByteScale::standardised(255.0, &[(0.0, 1.0), (0.5, 0.0)]).unwrap_err();
    assert!(error.to_string().contains("(0.5, 0.0)"), "{error}");
}
