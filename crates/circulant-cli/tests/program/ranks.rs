//! Processes that `mpirun` started, without MPI in the program. `bench/mpi/check.py` has real ranks.

use std::fs;
use std::process::Command;

use crate::support::{Place, QUICK, program, stderr};

/// The program as `mpirun -n 2` starts it.
fn rank(rank: &str, line: &str) -> Command {
    let mut command = program(line);
    command
        .env("OMPI_COMM_WORLD_SIZE", "2")
        .env("OMPI_COMM_WORLD_RANK", rank);
    command
}

#[cfg(not(feature = "mpi"))]
#[test]
fn several_processes_without_mpi_are_refused_once() {
    let root = Place::temporary();
    let out = root.at("run");
    let line = format!("train {QUICK} --out {out}");
    let first = rank("0", &line).output().expect("the program starts");
    let message = stderr(&first);
    assert_eq!(first.status.code(), Some(1), "{message}");
    for part in [
        "2 processes were started together",
        "without MPI",
        "cargo build --release --features mpi",
        "CIRCULANT_MPI=off",
    ] {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    let other = rank("1", &line).output().expect("the program starts");
    assert_eq!(other.status.code(), Some(1));
    assert!(first.stdout.is_empty() && other.stdout.is_empty());
    assert_eq!(stderr(&other), "", "rank 0 alone speaks");
    assert!(!out.exists(), "nobody has trained");
}

#[test]
fn processes_that_have_nothing_to_do_with_each_other_train_alone() {
    let root = Place::temporary();
    let out = root.at("run");
    let mut command = rank("1", &format!("train {QUICK} --out {out}"));
    let output = command
        .env("CIRCULANT_MPI", "off")
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!output.stdout.is_empty());
    let facts = fs::read_to_string(out.join("run.json")).unwrap();
    assert!(facts.contains("\"ranks\": 1"), "{facts}");
}
