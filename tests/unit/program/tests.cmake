lockstep_add_unit_test(program/blocks TORCH)
lockstep_add_unit_test(program/graph_reader TORCH)
lockstep_add_unit_test(program/guard TORCH)
lockstep_add_unit_test(program/sizes TORCH)
