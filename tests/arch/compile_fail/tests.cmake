# What must not compile, with a control that must; and each torch-free header, alone and twice:
# the public ones always, those of a room's own use with --long.
# The compiler is asked directly, without a build.

set(lockstep_syntax_check ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only
    -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src)

function(lockstep_add_compile_test name expected)
    add_test(NAME arch.compile.${name}
             COMMAND ${lockstep_syntax_check} ${CMAKE_CURRENT_SOURCE_DIR}/arch/compile_fail/${name}.cpp)
    set_tests_properties(arch.compile.${name} PROPERTIES LABELS arch TIMEOUT 300)
    if(expected)
        set_tests_properties(arch.compile.${name} PROPERTIES PASS_REGULAR_EXPRESSION "${expected}")
    endif()
endfunction()

lockstep_add_compile_test(control "")
lockstep_add_compile_test(copies_a_communicator "deleted")
lockstep_add_compile_test(finishes_a_kept_sum "as .this. argument discards qualifiers|cannot bind|ref-qualifier|passing")
lockstep_add_compile_test(looks_for_squares "is private")
lockstep_add_compile_test(broadcasts_strings "constraints not satisfied|no matching function")

foreach(room base config comm h5 data import checkpoint rl monitor report launch measure)
    file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/lockstep/${room}/*.hpp
         ${PROJECT_SOURCE_DIR}/src/${room}/*.hpp)
    # Some see what is not everywhere; all others do without MPI's header.
    list(FILTER headers EXCLUDE REGEX "nccl_api|comm/(native|message_queue)\\.hpp|h5/types")
    foreach(header IN LISTS headers)
        get_filename_component(name ${header} NAME_WE)
        add_test(NAME arch.header.${room}.${name}
                 COMMAND ${lockstep_syntax_check} -Wall -Wextra -Werror -x c++
                         -include ${header} -include ${header} /dev/null)
        set(labels arch)
        if(NOT header MATCHES "/include/")
            list(APPEND labels long)
        endif()
        set_tests_properties(arch.header.${room}.${name} PROPERTIES LABELS "${labels}" TIMEOUT 300)
    endforeach()
endforeach()
