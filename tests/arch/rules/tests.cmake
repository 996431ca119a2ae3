# Rules of the tree that no compiler checks: each is kept here, and each finds the fault that is
# planted for it in faulty/.

find_package(Python3 REQUIRED COMPONENTS Interpreter)

function(lockstep_add_rule rule fault)
    set(faulty ${CMAKE_CURRENT_SOURCE_DIR}/arch/rules/faulty)
    if(ARGN)
        set(faulty ${ARGN})
    endif()
    set(script ${CMAKE_CURRENT_SOURCE_DIR}/arch/rules/rules.py)
    add_test(NAME arch.rule.${rule}
             COMMAND ${Python3_EXECUTABLE} ${script} ${PROJECT_SOURCE_DIR} ${rule})
    add_test(NAME arch.rule.${rule}.finds
             COMMAND ${Python3_EXECUTABLE} ${script}
                     ${faulty} ${rule})
    set_tests_properties(arch.rule.${rule} arch.rule.${rule}.finds PROPERTIES LABELS arch TIMEOUT 300
                         ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
    set_tests_properties(arch.rule.${rule}.finds PROPERTIES PASS_REGULAR_EXPRESSION "${fault}")
endfunction()

lockstep_add_rule(rooms "comm/rules.hpp:3: comm must not include h5.*h5/file.hpp is not installed.*data/rules.hpp is a private.*base/table.hpp is for other rooms")
lockstep_add_rule(lists "docs/architecture.md:1: lists the rooms base, comm, config, but.*.clang-format:1: lists the rooms base, but")
set(crowded ${CMAKE_CURRENT_BINARY_DIR}/crowded)
file(MAKE_DIRECTORY ${crowded}/src/base)
foreach(number RANGE 70)
    file(TOUCH ${crowded}/src/base/source_${number}.cpp)
endforeach()
lockstep_add_rule(folders "src/base:1: 71 sources" ${crowded})
lockstep_add_rule(torch "comm/rules.hpp:5: torch belongs in")
lockstep_add_rule(mpi "base/rules.cpp:9: mpi belongs in")
lockstep_add_rule(world "base/rules.cpp:4: world belongs in")
lockstep_add_rule(hdf5 "base/rules.cpp:5: hdf5 belongs in")
lockstep_add_rule(vendor "base/rules.cpp:13: vendor belongs in")
lockstep_add_rule(nccl "base/rules.cpp:6: nccl belongs in")
lockstep_add_rule(fmt "base/rules.cpp:18: fmt belongs in")
lockstep_add_rule(json "base/rules.cpp:20: json belongs in")
lockstep_add_rule(creating "base/rules.cpp:21: creating belongs in.*base/rules.cpp:22: creating belongs in")
lockstep_add_rule(directories "base/rules.cpp:24: directories belongs in")
lockstep_add_rule(notices "base/rules.cpp:25: notices belongs in")
lockstep_add_rule(tokens "base/rules.cpp:23: tokens belongs in")
lockstep_add_rule(words "base/rules.cpp:1: 'votes': say status reduction.*'s.most': say max.*'pass_over': say skipped.*'in_turn': say seq.*'two a sample': say per.*'least_': say max_.*'double least': say max.*'ms a step': say per")
lockstep_add_rule(comments "comm/rules.hpp:17: 'Of'.*comm/rules.hpp:19: 'That of'.*comm/rules.hpp:22: 'Those'")
lockstep_add_rule(mutations "base/gone.cpp: is not there.*'not in it', which unit.base guards, is not there")
lockstep_add_rule(keys "migration.md:3: there is no key train.epoch.*migration.md:3: there is no key .patient of train.patience.*migration.md:4: schedule.name has no value cosinus.*migration.md:4: rises is neither a key beside schedule.name.*migration.md:5: there is no lockstep exports.*migration.md:5: there is no option --name.*migration.md:6: data.augment has no entry flop")
lockstep_add_rule(collective "comm/rules.hpp:10: silent does not say")

# Scripts that users start parse at least.
file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bootstrap ${PROJECT_SOURCE_DIR}/.ci/run
     ${PROJECT_SOURCE_DIR}/slurm/*.sbatch ${PROJECT_SOURCE_DIR}/pbs/*.pbs)
foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME)
    add_test(NAME arch.script.${name} COMMAND bash -n ${script})
    set_tests_properties(arch.script.${name} PROPERTIES LABELS arch TIMEOUT 300)
endforeach()
