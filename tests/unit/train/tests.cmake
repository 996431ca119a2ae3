lockstep_add_unit_test(train/schedule TORCH)
lockstep_add_unit_test(train/optimizer TORCH)
lockstep_add_unit_test(train/model TORCH)
lockstep_add_unit_test(train/schedule_golden TORCH)
