use circulant_kernels::transform::plan::*;

/// What `unsafe` in this module rests on: every position of every stage has a slot of the block, where the stages look for it.
#[test]
fn stages_stay_within_the_slots_of_a_block() {
    let signals = (1..=130).chain([128, 256, 512, 1024, 2048, 4096, 8192, 16384, 1 << 17, 784]);
    let images = [
        (2, 64),
        (16, 16),
        (32, 32),
        (64, 2),
        (28, 28),
        (8, 512),
        (17, 4),
        (3, 19),
    ];
    for (height, width) in signals.map(|length| (1, length)).chain(images) {
        let plan = LanePlan::<f32>::new(height, width);
        let (len, shift) = (height * width, plan.shift());
        assert_eq!(slot(len - 1, shift) + 1, plan.order().len());
        for stage in plan.stages() {
            assert_eq!(len % stage.block, 0);
            let (radix, twiddles) = match &stage.step {
                Step::Butterfly { radix, twiddles } => (*radix, twiddles.len()),
                Step::Axis { forward, .. } => (forward.len(), usize::MAX),
            };
            let span = stage.span;
            assert_eq!(radix * span, stage.block);
            assert!(span / stage.inner * (radix - 1) <= twiddles);
            for start in (0..len).step_by(stage.block) {
                for (j, k) in (0..span).flat_map(|j| (0..radix).map(move |k| (j, k))) {
                    let found = slot(start, shift) + slot(j, shift) + k * slot(span, shift);
                    assert_eq!(
                        found,
                        slot(start + j + k * span, shift),
                        "{height} x {width}"
                    );
                    assert!(plan.order()[found].is_some());
                }
            }
        }
    }
}
