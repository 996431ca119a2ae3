# lockstep_add_unit_test(room/name [TORCH] [GOLDEN] [ALONE] [LONG]) tests/unit/room/name_test.cpp, one process;
#                                                   GOLDEN: it reads files of tests/golden
#                                                   LONG: unit.room.name.long tries all cases (long_form.hpp)
# lockstep_add_mpi_test(room/name NP 1 2 4 [TORCH] [ALONE]) tests/mpi/room/name_test.cpp, one ctest entry
#                                                   for each rank count: mpi.room.name.np4
# The tests of a room are one program, unit.room or mpi.room, of which each ctest entry runs one file's
# cases: `build/tests/unit.data "[#order_test]" --filenames-as-tags`. ALONE: a program of its own.
# An HDF5 error stack on the output is a failure everywhere.

set(lockstep_mpi_environment
    "OMP_NUM_THREADS=1;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_mpi_yield_when_idle=1;OMPI_MCA_hwloc_base_binding_policy=none")
# What Open MPI chooses here in any case: looking at the others first costs each process a quarter of a second.
list(APPEND lockstep_mpi_environment OMPI_MCA_pml=ob1)

# What is not of this program is skipped, each with its reason; a sanitizer takes its time.
set(lockstep_test_timeout 300)
if(LOCKSTEP_SANITIZE)
    set(lockstep_test_timeout 1200)
    set(suppressions ${PROJECT_SOURCE_DIR}/tests/sanitizers)
    list(APPEND lockstep_mpi_environment "TSAN_OPTIONS=suppressions=${suppressions}/thread.supp"
         "ASAN_OPTIONS=detect_leaks=0")
endif()

# Under a sanitizer a test is linked with the rooms up to its own alone: minutes less to compile.
set(lockstep_rooms_in_order base comm config trace h5 data text import checkpoint rl program deploy nn lower task train)

function(lockstep_test_program target main room torch)
    add_executable(${target} $<TARGET_OBJECTS:lockstep_${main}_main> $<TARGET_OBJECTS:lockstep_catch>)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
    set(rooms lockstep_core)
    if(torch)
        list(APPEND rooms lockstep_trainer)
    endif()
    list(FIND lockstep_rooms_in_order ${room} place)
    list(FIND lockstep_rooms_in_order h5 place_of_h5)
    set(process "")
    if(main STREQUAL "mpi") # its programs have their process for themselves, like ours
        set(process lockstep_process)
        if(place GREATER_EQUAL 0 AND place LESS place_of_h5)
            set(place ${place_of_h5})
        endif()
    endif()
    if(LOCKSTEP_SANITIZE AND place GREATER_EQUAL 0)
        math(EXPR count "${place} + 1")
        list(SUBLIST lockstep_rooms_in_order 0 ${count} rooms)
        list(TRANSFORM rooms PREPEND lockstep_)
    endif()
    target_link_libraries(${target} PRIVATE lockstep_options MPI::MPI_CXX Catch2::Catch2
                          nlohmann_json::nlohmann_json ${process} ${rooms})
    # Quicker to compile; what is tested is compiled as it is used.
    target_compile_options(${target} PRIVATE -O1)
    set_target_properties(${target} PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    if(torch)
        target_link_libraries(${target} PRIVATE lockstep::torch)
    endif()
endfunction()

# The program that holds a test, in `program`, and the words that choose it there, in `chosen`.
macro(lockstep_test_in_program kind main path)
    string(REPLACE "/" "." name ${path})
    get_filename_component(room ${path} DIRECTORY)
    get_filename_component(file ${path} NAME)
    set(program ${kind}.${room})
    if(test_ALONE)
        set(program ${kind}.${name})
    endif()
    if(NOT TARGET ${program})
        lockstep_test_program(${program} ${main} ${room} ${test_TORCH})
    endif()
    target_sources(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${kind}/${path}_test.cpp)
    set(chosen "[#${file}_test]~[.]" --filenames-as-tags --warn NoTests)
endmacro()

function(lockstep_add_unit_test path)
    cmake_parse_arguments(test "TORCH;GOLDEN;ALONE;LONG" "" "" ${ARGN})
    if(test_TORCH AND NOT LOCKSTEP_WITH_TORCH)
        return()
    endif()
    lockstep_test_in_program(unit serial ${path})
    set(forms unit.${name})
    if(test_LONG)
        list(APPEND forms unit.${name}.long)
    endif()
    foreach(form IN LISTS forms)
        add_test(NAME ${form} COMMAND ${program} ${chosen})
        set_tests_properties(${form} PROPERTIES LABELS unit TIMEOUT ${lockstep_test_timeout}
                             FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
                             ENVIRONMENT "${lockstep_mpi_environment}")
        if(test_GOLDEN)
            set_property(TEST ${form} APPEND PROPERTY
                         ENVIRONMENT "LOCKSTEP_GOLDEN=${PROJECT_SOURCE_DIR}/tests/golden")
        endif()
    endforeach()
    if(test_LONG)
        set_tests_properties(unit.${name}.long PROPERTIES LABELS "unit;long")
        set_property(TEST unit.${name}.long APPEND PROPERTY ENVIRONMENT LOCKSTEP_LONG=1)
    endif()
endfunction()

# All that another MPI is tried with.
add_custom_target(mpi_tests)

function(lockstep_add_mpi_test path)
    cmake_parse_arguments(test "TORCH;ALONE" "" "NP" ${ARGN})
    if(test_TORCH AND NOT LOCKSTEP_WITH_TORCH)
        return()
    endif()
    lockstep_test_in_program(mpi mpi ${path})
    add_dependencies(mpi_tests ${program})
    foreach(ranks IN LISTS test_NP)
        set(processors 1) # most of the few seconds that a test takes are waiting
        if(ranks GREATER 4)
            set(processors 2)
        endif()
        add_test(NAME mpi.${name}.np${ranks}
                 COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                         $<TARGET_FILE:${program}> ${chosen} --expect-ranks ${ranks})
        set_tests_properties(mpi.${name}.np${ranks} PROPERTIES LABELS mpi TIMEOUT ${lockstep_test_timeout}
                             PROCESSORS ${processors} FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
                             ENVIRONMENT "${lockstep_mpi_environment}")
    endforeach()
endfunction()
