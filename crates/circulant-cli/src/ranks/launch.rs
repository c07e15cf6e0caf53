//! Whether `mpirun` or another launcher has started this process, and how many of it.

use std::env;
use std::thread::available_parallelism;

/// Variables of a launcher: how many processes there are, which one this is, how many run on this machine.
const LAUNCHERS: [[&str; 3]; 3] = [
    [
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ],
    ["PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"],
    ["SLURM_STEP_NUM_TASKS", "PMIX_RANK", "SLURM_TASKS_PER_NODE"],
];
/// `off` for processes that have nothing to do with each other.
pub(super) const SWITCH: &str = "CIRCULANT_MPI";

/// What a launcher says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launched {
    /// How many processes.
    pub(super) size: usize,
    /// Which one this is.
    pub(super) rank: usize,
    /// How many on this machine.
    local: usize,
}

/// None unless there are several processes.
pub(super) fn launched() -> Option<Launched> {
    of_variables(|name| env::var(name).ok())
}

fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    if variable(SWITCH).as_deref() == Some("off") {
        return None;
    }
    let number = |name: &str| variable(name)?.parse::<usize>().ok();
    let launched = LAUNCHERS.iter().find_map(|[size, rank, local]| {
        Some(Launched {
            size: number(size)?,
            rank: number(rank)?,
            local: number(local).unwrap_or(1),
        })
    });
    launched.filter(|launched| launched.size > 1)
}

/// The number of threads of the pool: as asked, or this process's share of the machine's cores; 0 for all of them.
pub fn threads(asked: Option<u16>) -> usize {
    match (asked, launched()) {
        (Some(asked), _) => asked.into(),
        (None, None) => 0,
        (None, Some(launched)) => {
            // A launcher may bind every process to cores of its own, or none.
            let allowed = available_parallelism().map_or(1, usize::from);
            let cores = std::fs::read_to_string("/proc/cpuinfo").map_or(allowed, |text| {
                let processor = |line: &&str| line.starts_with("processor");
                text.lines().filter(processor).count()
            });
            allowed.min(cores / launched.local.max(1)).max(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Option<Launched> {
        of_variables(|name| {
            let own = variables.iter().find(|(own, _)| *own == name);
            own.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_are_recognised() {
        let open_mpi = [
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        let expected = Launched {
            size: 4,
            rank: 3,
            local: 2,
        };
        assert_eq!(found(&open_mpi), Some(expected));
        let mpich = [("PMI_SIZE", "2"), ("PMI_RANK", "0")];
        assert_eq!(found(&mpich).map(|launched| launched.size), Some(2));
        for none in [
            vec![],
            vec![("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")],
            vec![("OMPI_COMM_WORLD_SIZE", "many")],
            // A job of SLURM that was not started as ranks.
            vec![("SLURM_STEP_NUM_TASKS", "4")],
            [&open_mpi[..], &[(SWITCH, "off")]].concat(),
        ] {
            assert_eq!(found(&none), None, "{none:?}");
        }
    }

    #[test]
    fn threads_are_those_asked_for_or_all() {
        assert_eq!((threads(Some(3)), threads(None)), (3, 0));
    }
}
