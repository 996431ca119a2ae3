# The documents' quick commands work, and what they name is there.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(LOCKSTEP_WITH_TORCH)
    add_test(NAME arch.docs COMMAND ${Python3_EXECUTABLE}
             ${CMAKE_CURRENT_SOURCE_DIR}/arch/docs/run_docs.py ${PROJECT_SOURCE_DIR}
             ${PROJECT_BINARY_DIR})
    set_tests_properties(arch.docs PROPERTIES LABELS arch TIMEOUT 60)
endif()
