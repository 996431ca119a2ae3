#include "lockstep/build_id_value.hpp"

#include <iostream>
#include <string_view>

#include "commands.hpp"

extern "C" char const* const lockstep_trainer_build_id;
char const* const lockstep_trainer_build_id = LOCKSTEP_BUILD_ID;

/// What the program calls after it has loaded this library. No exception leaves.
extern "C" int lockstep_train_side(char const* name, lockstep::app::Invocation const* invocation) {
    using namespace lockstep;
    using namespace lockstep::app;
    try {
        std::string_view const command = name;
        if (command == "train") {
            return static_cast<int>(train_command(*invocation));
        }
        if (command == "evaluate") {
            return static_cast<int>(evaluate_command(*invocation));
        }
        if (command == "bench step") {
            return static_cast<int>(bench_step_command(*invocation));
        }
        if (command == "models") {
            return static_cast<int>(models_command(*invocation));
        }
        return static_cast<int>(tasks_command(*invocation));
    } catch (...) {
        auto const error = current_error();
        std::cerr << "lockstep: " << error.what() << std::endl;
        return static_cast<int>(error.code());
    }
}
