lockstep_add_mpi_test(checkpoint/writer NP 1 2 3 4)
lockstep_add_mpi_test(checkpoint/failure NP 1 2 4)
lockstep_add_mpi_test(checkpoint/store NP 1 2 4)
lockstep_add_mpi_test(checkpoint/background NP 1 2 4)
