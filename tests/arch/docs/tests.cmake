# The documents' quick commands work, and what they name is there.
set(docs_python ${LOCKSTEP_PYTHON}) # with h5py
if(NOT docs_python)
    set(docs_python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    if(NOT EXISTS ${docs_python})
        find_package(Python3 REQUIRED COMPONENTS Interpreter)
        set(docs_python ${Python3_EXECUTABLE})
    endif()
endif()
set(docs_environment
    "${lockstep_mpi_environment};LOCKSTEP_BUILD=${PROJECT_BINARY_DIR};LOCKSTEP_SOURCE=${PROJECT_SOURCE_DIR};LOCKSTEP_TEST_DATA=${PROJECT_BINARY_DIR}/tests/data;PYTHONDONTWRITEBYTECODE=1")

add_test(NAME arch.job_scripts
         COMMAND ${docs_python} ${CMAKE_CURRENT_SOURCE_DIR}/arch/docs/job_scripts_test.py)
set_tests_properties(arch.job_scripts PROPERTIES LABELS arch TIMEOUT 300
                     ENVIRONMENT "${docs_environment}")
add_test(NAME arch.bootstrap
         COMMAND ${docs_python} ${CMAKE_CURRENT_SOURCE_DIR}/arch/docs/bootstrap_test.py)
set_tests_properties(arch.bootstrap PROPERTIES LABELS arch TIMEOUT 300 ENVIRONMENT "${docs_environment}")
add_test(NAME arch.shellcheck
         COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/arch/docs/shellcheck.sh ${PROJECT_SOURCE_DIR})
set_tests_properties(arch.shellcheck PROPERTIES LABELS arch TIMEOUT 300 SKIP_RETURN_CODE 77)
if(LOCKSTEP_WITH_TORCH)
    add_test(NAME arch.promises
             COMMAND ${docs_python} ${CMAKE_CURRENT_SOURCE_DIR}/arch/docs/promises_test.py)
    set_tests_properties(arch.promises PROPERTIES LABELS arch TIMEOUT 300
                         ENVIRONMENT "${docs_environment}")
    foreach(name arch.docs arch.docs.long) # .long runs all of them
        add_test(NAME ${name} COMMAND ${docs_python} ${CMAKE_CURRENT_SOURCE_DIR}/arch/docs/run_docs.py)
    endforeach()
    set_tests_properties(arch.docs PROPERTIES LABELS arch TIMEOUT 300 PROCESSORS 2
                         FIXTURES_REQUIRED data ENVIRONMENT "${docs_environment}")
    set_tests_properties(arch.docs.long PROPERTIES LABELS "arch;long" TIMEOUT 600 PROCESSORS 2
                         FIXTURES_REQUIRED data ENVIRONMENT "${docs_environment};LOCKSTEP_LONG=1")
endif()
