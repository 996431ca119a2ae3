lockstep_add_unit_test(base/text)
lockstep_add_unit_test(base/arguments)
lockstep_add_unit_test(base/list)
lockstep_add_unit_test(base/error)
lockstep_add_unit_test(base/file)
lockstep_add_unit_test(base/partial_file)
lockstep_add_unit_test(base/batch_job)
lockstep_add_unit_test(base/process)
lockstep_add_unit_test(base/gpus)
lockstep_add_unit_test(base/host_facts)
lockstep_add_unit_test(base/file_kind)
lockstep_add_unit_test(base/json_line)
lockstep_add_unit_test(base/exact_sum)

add_library(lockstep_test_driver MODULE unit/base/test_driver.cpp)
add_dependencies(unit.base lockstep_test_driver)
target_compile_definitions(unit.base
    PRIVATE LOCKSTEP_TEST_DRIVER="$<TARGET_FILE:lockstep_test_driver>")
lockstep_add_unit_test(base/recorder)
lockstep_add_unit_test(base/usage)

lockstep_add_unit_test(base/pci_gauge)
lockstep_add_unit_test(base/device_gauge)
add_library(lockstep_fake_nvml SHARED support/fake_nvml.cpp)
set_target_properties(lockstep_fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fake)
add_dependencies(unit.base lockstep_fake_nvml)
set_property(TEST unit.base.device_gauge APPEND PROPERTY ENVIRONMENT
             LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/fake)
