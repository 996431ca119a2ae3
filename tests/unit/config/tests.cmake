lockstep_add_unit_test(config/deck)
lockstep_add_unit_test(config/deck_text)
lockstep_add_unit_test(config/all_keys)
lockstep_add_unit_test(config/steps)
