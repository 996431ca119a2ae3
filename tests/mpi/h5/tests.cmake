lockstep_add_mpi_test(h5/parallel NP 1 2 3 4)

# A tool that is preloaded stands between this program's own functions and MPI's.
if(NOT LOCKSTEP_SANITIZE)
    add_library(lockstep_io_tool SHARED support/io_tool.cpp)
    target_link_libraries(lockstep_io_tool PRIVATE lockstep_options MPI::MPI_CXX)
    set_target_properties(lockstep_io_tool PROPERTIES
                          LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(mpi.h5 lockstep_io_tool)
    add_test(NAME mpi.h5.parallel.np2.tool
             COMMAND ${CMAKE_COMMAND} -E env LD_PRELOAD=$<TARGET_FILE:lockstep_io_tool>
                     LOCKSTEP_EXPECT_TOOL=1 ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2
                     $<TARGET_FILE:mpi.h5> --expect-ranks 2)
    set_tests_properties(mpi.h5.parallel.np2.tool PROPERTIES LABELS mpi TIMEOUT 120 PROCESSORS 1
                         FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
                         ENVIRONMENT "${lockstep_mpi_environment}")
endif()
