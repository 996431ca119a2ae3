lockstep_add_mpi_test(comm/communicator NP 1 2 4)
lockstep_add_mpi_test(comm/collectives NP 1 2 3 4)
add_test(NAME mpi.comm.collectives.large.long
         COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2 $<TARGET_FILE:mpi.comm>
                 --expect-ranks 2 [large])
set_tests_properties(mpi.comm.collectives.large.long PROPERTIES LABELS "mpi;long" TIMEOUT 600
                     PROCESSORS 2 ENVIRONMENT "${lockstep_mpi_environment}")
lockstep_add_mpi_test(comm/agree NP 1 2 4)
lockstep_add_mpi_test(comm/topology NP 1 2 4)
lockstep_add_mpi_test(comm/nccl NP 1 2 4)

# What needs a GPU is built wherever NCCL is, and registered where there are GPUs, one per rank.
if(TARGET lockstep::nccl AND NOT LOCKSTEP_WITH_RCCL)
    file(GLOB gpus /dev/nvidia[0-9]*)
    list(LENGTH gpus gpu_count)
    set(gpu_ranks "")
    foreach(ranks 1 2 4)
        if(ranks LESS_EQUAL gpu_count)
            list(APPEND gpu_ranks ${ranks})
        endif()
    endforeach()
    lockstep_add_mpi_test(comm/nccl_device NP ${gpu_ranks} ALONE)
    target_link_libraries(mpi.comm.nccl_device PRIVATE lockstep::nccl)
    foreach(ranks IN LISTS gpu_ranks)
        set_tests_properties(mpi.comm.nccl_device.np${ranks} PROPERTIES LABELS "mpi;gpu"
                             RUN_SERIAL ON)
    endforeach()
    if(NOT gpu_ranks)
        message(STATUS "No GPU on this host: mpi.comm.nccl_device is built, but not run")
    endif()
endif()
lockstep_add_mpi_test(comm/tree_exchange NP 1 2 3 4 7)
lockstep_add_mpi_test(comm/wire NP 1 2 4)
lockstep_add_mpi_test(comm/heartbeats NP 1 2 3)
