# shellcheck shell=bash disable=SC2034
# What only one cluster needs: copy this file, change it, and name the copy at sbatch.

# module purge
# module load gcc openmpi hdf5/parallel

# The program and the deck.
# EXE=build/lockstep
# INPUT=my_deck.ini

# Slurm's own launcher instead of mpirun; it needs a Slurm built with PMIx (srun --mpi=list).
# LAUNCH="srun --mpi=pmix"
# LAUNCHER=srun # the same, for restarts inside the job

# Restarts inside the job after the loss of a rank, before the job is requeued.
# RESTARTS=2

# The network that ranks of several nodes speak over.
# export OMPI_MCA_btl_tcp_if_include=ib0
# export NCCL_SOCKET_IFNAME=ib0
