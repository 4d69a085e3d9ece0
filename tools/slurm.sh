#!/usr/bin/env bash
# A Slurm job that walks a chain and submits itself again until it is done:
#
#   sbatch tools/slurm.sh RUN.toml ensembles/NAME         (ensembles/NAME/STREAM for a stream)
#
# One process drives one GPU. For many nodes raise --nodes: the chain has the same bits on any number of ranks.
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@300
#SBATCH --open-mode=append
#SBATCH --requeue
set -euo pipefail
input=$1 folder=$2
# The program, or a command that runs it: HMC="apptainer exec --nv hmc.sif hmc".
read -ra hmc <<<"${HMC:-hmc}"

before=$("${hmc[@]}" status "$folder" 2>/dev/null | head -n 1 || true)
# A run ends by itself before the job does, with code 0. Any other code is for a person to look at: nothing is submitted.
srun --mpi="${HMC_MPI:-pmix}" "${hmc[@]}" "$input"
"${hmc[@]}" report "$folder"
if "${hmc[@]}" status "$folder" | grep -q ', none left$'; then
    echo 'the chain is done'
elif [ "$("${hmc[@]}" status "$folder" | head -n 1)" = "$before" ]; then
    echo 'no trajectory was finished: give the job more time'
    exit 1
else
    sbatch "$0" "$input" "$folder"
fi
