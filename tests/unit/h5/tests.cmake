lockstep_add_unit_test(h5/file)
