lockstep_add_mpi_test(data/epoch NP 1 2 3 4)
lockstep_add_mpi_test(data/cache NP 1 2 3)
lockstep_add_mpi_test(data/together NP 1 2 4)
target_link_libraries(mpi.data PRIVATE hdf5::hdf5)
