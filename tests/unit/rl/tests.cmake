foreach(name advantages environment environment_set indicators trading)
    lockstep_add_unit_test(rl/${name} GOLDEN)
endforeach()
