use circulant_kernels::random::philox::*;

fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let half = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let key = NoiseKey {
        seed: half(key[0], key[1]),
        stream: half(counter[2], counter[3]),
    };
    words(key, half(counter[0], counter[1])).map(|word| word as u32)
}

/// `kat_vectors` of Random123.
#[test]
fn known_answers() {
    assert_eq!(
        philox([0; 4], [0; 2]),
        [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
    );
    assert_eq!(
        philox([u32::MAX; 4], [u32::MAX; 2]),
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
    );
    assert_eq!(
        philox(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0]
        ),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
    );
}

#[test]
fn integers_are_those_of_the_generator_and_differ() {
    let key = NoiseKey { seed: 7, stream: 9 };
    let numbers: std::collections::HashSet<u64> =
        (0..10_000).map(|i| uniform_u64(key, i)).collect();
    assert_eq!(numbers.len(), 10_000);
    let words = philox([2, 1 << 31, 9, 0], [7, 0]);
    let pair = |i: usize| u64::from(words[i]) | u64::from(words[i + 1]) << 32;
    assert_eq!(uniform_u64(key, 4), pair(0));
    assert_eq!(uniform_u64(key, 5), pair(2));
}
