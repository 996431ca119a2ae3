lockstep_add_unit_test(rl/advantages)
lockstep_add_unit_test(rl/environment)
lockstep_add_unit_test(rl/environment_set)
foreach(name advantages environment)
    target_compile_definitions(unit.rl.${name} PRIVATE
                               LOCKSTEP_GOLDEN="${PROJECT_SOURCE_DIR}/tests/golden")
endforeach()
