lockstep_add_unit_test(nn/legendre_memory TORCH GOLDEN)
lockstep_add_unit_test(nn/lmu_asr TORCH)
lockstep_add_unit_test(nn/policy TORCH)
lockstep_add_unit_test(nn/quantised TORCH)
