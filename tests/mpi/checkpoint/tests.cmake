lockstep_add_mpi_test(checkpoint/writer NP 1 2 3 4)
lockstep_add_mpi_test(checkpoint/failure NP 1 2 4)
lockstep_add_mpi_test(checkpoint/store NP 1 2 4)
lockstep_add_mpi_test(checkpoint/background NP 1 2 4)
lockstep_add_mpi_test(checkpoint/memory_copies NP 1 2 3 4)
add_test(NAME mpi.checkpoint.background.np2.abort
         COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2 $<TARGET_FILE:mpi.checkpoint>
                 --expect-ranks 2 [abort])
set_tests_properties(mpi.checkpoint.background.np2.abort PROPERTIES LABELS mpi TIMEOUT 60 PROCESSORS 2
                     PASS_REGULAR_EXPRESSION "MPI is shutting down while a thread is still writing a checkpoint"
                     ENVIRONMENT "${lockstep_mpi_environment}")
