lockstep_add_mpi_test(train/engine NP 1 2 3 4 8 TORCH)
lockstep_add_mpi_test(train/compression NP 1 2 3 4 TORCH)
lockstep_add_mpi_test(train/precision NP 1 2 3 4 TORCH)
lockstep_add_mpi_test(train/trainer NP 2 TORCH)
