lockstep_add_unit_test(base/text)
lockstep_add_unit_test(base/error)
lockstep_add_unit_test(base/file)
lockstep_add_unit_test(base/process)
