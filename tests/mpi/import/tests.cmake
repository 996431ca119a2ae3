lockstep_add_mpi_test(import/import NP 1 2 3 4)
