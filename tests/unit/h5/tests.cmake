lockstep_add_unit_test(h5/file)
lockstep_add_unit_test(h5/text_rows)
