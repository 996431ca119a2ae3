lockstep_add_unit_test(deploy/graph)
lockstep_add_unit_test(deploy/c_writer)
