lockstep_add_mpi_test(comm/nccl NP 1 2 4)
