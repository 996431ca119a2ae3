lockstep_add_unit_test(monitor/device_gauge)
add_library(lockstep_fake_nvml SHARED support/fake_nvml.cpp)
set_target_properties(lockstep_fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fake)
add_dependencies(unit.monitor lockstep_fake_nvml)
set_property(TEST unit.monitor.device_gauge APPEND PROPERTY ENVIRONMENT
             LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/fake)
lockstep_add_unit_test(monitor/hearing)
lockstep_add_unit_test(monitor/host_probe)
lockstep_add_unit_test(monitor/root_cause)
lockstep_add_unit_test(monitor/ledger)
lockstep_add_unit_test(monitor/run_records)
lockstep_add_unit_test(monitor/stall_judge)
lockstep_add_unit_test(monitor/tolerant)
