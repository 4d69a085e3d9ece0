//! Tasks that a launcher started without MPI are refused, once for all of them; what a batch job's variables say besides
//! is no hindrance.

use crate::program::{Scratch, command, quickstart, with};
use std::process::Output;

/// `hmc info` of no file, which ends with exit code 1 where it is reached, with these variables.
fn with_variables(program: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = command(program[0]);
    let arguments = [&program[1..], &["info", "no/such.h5"]].concat();
    command.args(arguments).envs(variables.iter().copied()).output().expect("it starts")
}

const HMC: &str = env!("CARGO_BIN_EXE_hmc");

#[test]
fn tasks_without_mpi_are_refused_by_one_of_them() {
    for rank in ["0", "3"] {
        for (size, place, launcher) in [
            ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"),
            ("FLUX_JOB_SIZE", "FLUX_TASK_RANK", "flux run"),
        ] {
            let found = with_variables(&[HMC], &[(size, "4"), (place, rank)]);
            assert_eq!(found.status.code(), Some(2), "{found:?}");
            let told = String::from_utf8_lossy(&found.stderr);
            let expected = format!("error: {launcher} started 4 tasks, but without MPI (no PMI): ");
            assert!(if rank == "0" { told.starts_with(&expected) } else { told.is_empty() }, "{told}");
            assert!(found.stdout.is_empty());
        }
    }
}

/// OpenMPI does not know PALS, and starts as a world of its own.
#[test]
fn tasks_of_a_foreign_launcher_are_refused() {
    let root = [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
    for rank in ["0", "3"] {
        let variables = [&root[..], &[("PALS_RANKID", rank), ("PALS_SIZE", "4")]].concat();
        let found = with_variables(&[HMC], &variables);
        assert_eq!(found.status.code(), Some(2), "{found:?}");
        let told = String::from_utf8_lossy(&found.stderr);
        let expected = "started 4 tasks, but MPI finds each of them alone";
        assert_eq!(told.contains(expected), rank == "0", "{told}");
    }
}

#[test]
fn one_task_and_a_batch_script_are_alone() {
    for variables in [
        &[("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")],
        &[("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0")],
        &[("FLUX_JOB_SIZE", "1"), ("FLUX_TASK_RANK", "0")],
    ] {
        let found = with_variables(&[HMC], variables);
        assert_eq!(found.status.code(), Some(1), "{found:?}");
    }
}

/// Slurm starts mpirun's helpers as tasks of a step, whose variables come along.
#[test]
fn mpirun_inside_a_job_of_slurm_works() {
    let scratch = Scratch::new();
    let input = scratch.write("run.toml", with(&quickstart(), "trajectories", "5"));
    let step = [("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_NTASKS", "4"), ("SLURM_PROCID", "1")];
    let ended = scratch.start_with(2, &[&input, "--check"], &step).wait();
    ended.succeeded();
    assert!(ended.out.contains("ranks          2 as"), "{ended:?}");
}
