//! The pool of threads; a process of its own, because it has one pool only.

use circulant_kernels::{KernelError, join_pool};

#[test]
fn the_caller_becomes_a_worker_once() {
    assert_eq!(rayon::current_thread_index(), None);
    join_pool(2).expect("nothing has used the pool yet");
    assert_eq!(rayon::current_thread_index(), Some(0));
    assert_eq!(rayon::current_num_threads(), 2);
    assert_eq!(join_pool(2), Err(KernelError::PoolInUse));
}
