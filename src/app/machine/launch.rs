//! How this process was started, according to the launchers' variables: alone, as a rank of MPI, or as one of several
//! unconnected tasks, each of which would believe itself to be the only rank.

/// The kind of start.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Launch {
    /// Alone.
    Alone,
    /// By a launcher that some MPI understands.
    Mpi(Option<Tasks>),
    /// As one of several tasks, without MPI.
    Unconnected(Tasks),
}

/// The tasks that a launcher started.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tasks {
    launcher: &'static str,
    /// Their number.
    pub count: usize,
    /// The number of this task, if the launcher states it.
    rank: Option<usize>,
    advice: &'static str,
}

/// Variables by which an MPI recognises its launcher.
const MPI: [&str; 8] = [
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMIX_RANK",
    "PMI_CONTROL_PORT",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "I_MPI_PMI_LIBRARY",
];

/// A launcher's name, its variables for the number of tasks and for the rank, and how it starts MPI. If one launcher
/// starts another, such as mpirun in a Slurm job, the inner one comes first.
type Launcher = (&'static str, &'static str, &'static str, &'static str);
/// For Slurm, the tasks of a step count, since a batch script also has variables for the tasks of the job.
const LAUNCHERS: [Launcher; 7] = [
    ("mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", MPIRUN),
    ("mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", MPIRUN),
    ("mpirun", "PMI_SIZE", "PMI_RANK", MPIRUN),
    ("mpiexec of PALS", "PALS_SIZE", "PALS_RANKID", MPIRUN),
    ("mpiexec of PALS", "PALS_NRANKS", "PALS_RANKID", MPIRUN),
    ("flux run", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", "flux run -o pmi=simple or -o pmi=pmix"),
    ("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun --mpi=pmix or --mpi=pmi2"),
];
const MPIRUN: &str = "the mpirun of the MPI that it was built with";

/// Determines the kind of start; `variable` looks variables up.
pub(super) fn launch(variable: impl Fn(&str) -> Option<String>) -> Launch {
    let number = |name: &str| variable(name)?.trim().parse().ok();
    let tasks = LAUNCHERS.iter().find_map(|&(launcher, size, rank, advice)| {
        Some(Tasks { launcher, count: number(size)?, rank: number(rank), advice })
    });
    if MPI.iter().any(|name| variable(name).is_some()) {
        return Launch::Mpi(tasks);
    }
    match tasks.filter(|tasks| tasks.count > 1) {
        Some(tasks) => Launch::Unconnected(tasks),
        None => Launch::Alone,
    }
}

impl Tasks {
    /// Whether this task reports for all; every task does if ranks are unknown.
    pub(super) fn speaks(&self) -> bool {
        self.rank.is_none_or(|rank| rank == 0)
    }

    /// The message for tasks without any variables of an MPI.
    pub(super) fn unconnected(&self) -> String {
        let Self { launcher, count, advice, .. } = self;
        format!(
            "{launcher} started {count} tasks, but without MPI (no PMI): each would do all the work alone; start with \
             mpirun, or with {advice}"
        )
    }

    /// The message for tasks that are each alone in their MPI.
    pub(super) fn foreign(&self) -> String {
        let Self { launcher, count, advice, .. } = self;
        format!(
            "{launcher} started {count} tasks, but MPI finds each of them alone: the MPI of this program does not know \
             that launcher; start with {MPIRUN}{}",
            if *advice == MPIRUN { String::new() } else { format!(", or with {advice}") }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(variables: &str) -> Launch {
        launch(|name| {
            let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        })
    }

    #[test]
    fn a_process_by_itself_is_alone() {
        // The last case is a batch script of Slurm.
        for variables in
            ["", "HOME=/root", "SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0", "SLURM_NTASKS=4 SLURM_PROCID=0"]
        {
            assert_eq!(launched(variables), Launch::Alone, "{variables}");
        }
    }

    #[test]
    fn launchers_of_mpi_start_it() {
        for (variables, expected) in [
            ("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1", Some((2, false))),
            ("OMPI_COMM_WORLD_SIZE=1 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3", Some((1, true))),
            ("PMI_RANK=0 PMI_SIZE=3", Some((3, true))),
            ("PMIX_RANK=2 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2", Some((4, false))),
            ("PMI_CONTROL_PORT=3000 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0", Some((4, true))),
            ("MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2", Some((2, false))),
            ("PALS_RANKID=1", None),
            ("PALS_RANKID=1 PALS_SIZE=8", Some((8, false))),
            ("FLUX_JOB_SIZE=2 FLUX_TASK_RANK=1 PMI_RANK=1 PMI_SIZE=2", Some((2, false))),
            ("MPI_LOCALRANKID=0", None),
        ] {
            let Launch::Mpi(tasks) = launched(variables) else { panic!("{variables}") };
            assert_eq!(tasks.map(|tasks| (tasks.count, tasks.speaks())), expected, "{variables}");
        }
    }

    #[test]
    fn tasks_that_nothing_connects_are_told_by_one() {
        for (variables, speaks) in [
            ("SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0", true),
            ("SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2", false),
            ("SLURM_STEP_NUM_TASKS=4", true),
            ("FLUX_JOB_SIZE=4 FLUX_TASK_RANK=1", false),
            ("PALS_NRANKS=4", true),
        ] {
            let Launch::Unconnected(tasks) = launched(variables) else { panic!("{variables}") };
            assert_eq!(tasks.speaks(), speaks, "{variables}");
            assert!(tasks.unconnected().contains(" started 4 tasks, but without MPI"));
        }
    }
}
