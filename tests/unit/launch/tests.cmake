lockstep_add_unit_test(launch/blame)
lockstep_add_unit_test(launch/road)
