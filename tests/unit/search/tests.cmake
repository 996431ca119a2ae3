lockstep_add_unit_test(search/ranks_of_trials)
lockstep_add_unit_test(search/space)
lockstep_add_unit_test(search/strategy)
lockstep_add_unit_test(search/study)
# Ask and tell on a test function, for bench/search_peers.py.
add_executable(search_optimizer ${CMAKE_CURRENT_SOURCE_DIR}/unit/search/search_optimizer.cpp)
target_link_libraries(search_optimizer PRIVATE lockstep_options lockstep_core nlohmann_json::nlohmann_json)
set_target_properties(search_optimizer PROPERTIES EXCLUDE_FROM_ALL ON
                      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
