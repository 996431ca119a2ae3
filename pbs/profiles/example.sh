# shellcheck shell=bash disable=SC2034
# What only one cluster needs: copy this file, change it, and name the copy by qsub -v PROFILE=FILE.

# A job begins with a short PATH.
# module load gcc openmpi hdf5/parallel

# The program and the deck.
# EXE=build/lockstep
# INPUT=my_deck.ini

# Where qstat cannot be run on the nodes, the seconds that the run may take; else they are known.
# RUN_SECONDS=3500

# Restarts inside the job after the loss of a rank, before the next job is submitted.
# RESTARTS=2

# The agent that starts mpirun's daemons where ssh between nodes is not allowed.
# export OMPI_MCA_plm_rsh_agent=$PBS_O_WORKDIR/pbs/rsh.sh
