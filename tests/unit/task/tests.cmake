lockstep_add_unit_test(task/classification TORCH)
lockstep_add_unit_test(task/places_and_amounts TORCH)
lockstep_add_unit_test(task/ppo TORCH)
