use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

use circulant_kernels::runtime::threads::*;

#[test]
fn both_sides_run_and_the_main_side_may_use_the_pool() {
    for _ in 0..200 {
        let sum = || (0..1000_u64).into_par_iter().sum::<u64>();
        assert_eq!(join_awake(sum, || 7), (499_500, 7));
    }
}

#[test]
fn a_main_side_that_takes_long_or_panics_is_no_trap() {
    let pause = || std::thread::sleep(3 * LONGEST);
    join_awake(pause, || ());
    let panicked = std::panic::catch_unwind(|| join_awake(|| panic!("on purpose"), || ()));
    assert!(panicked.is_err());
}

#[test]
fn every_task_runs_once_and_results_come_in_order() {
    for threads in [1, 2, 3, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            for count in [0, 1, 2, 3, 7, 64] {
                let runs = AtomicUsize::new(0);
                let doubled = share(count, |task| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    2 * task
                });
                assert!(doubled.into_iter().eq((0..count).map(|task| 2 * task)));
                assert_eq!(runs.into_inner(), count);
            }
        });
    }
}

#[test]
fn a_panic_of_a_task_is_passed_on() {
    let run = || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2);
        let shared = || share(8, |task| assert_ne!(task, 5, "on purpose"));
        pool.build().unwrap().install(shared)
    };
    assert!(std::panic::catch_unwind(run).is_err());
}
