lockstep_add_mpi_test(train/engine NP 1 2 3 4 8 TORCH)
