foreach(name advantages environment environment_set indicators trading)
    lockstep_add_unit_test(rl/${name})
    target_compile_definitions(unit.rl.${name} PRIVATE
                               LOCKSTEP_GOLDEN="${PROJECT_SOURCE_DIR}/tests/golden")
endforeach()
