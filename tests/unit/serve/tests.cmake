lockstep_add_unit_test(serve/http)
lockstep_add_unit_test(serve/run)
lockstep_add_unit_test(serve/series)
lockstep_add_unit_test(serve/step_lines)
