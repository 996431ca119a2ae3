lockstep_add_mpi_test(h5/parallel NP 1 2 3 4)
