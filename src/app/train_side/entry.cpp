#include "lockstep/build_id_value.hpp"

#include <iostream>
#include <map>
#include <string_view>

#include "commands.hpp"

extern "C" char const* const lockstep_trainer_build_id;
char const* const lockstep_trainer_build_id = LOCKSTEP_BUILD_ID;

/// What the program calls after it has loaded this library. No exception leaves.
extern "C" int lockstep_train_side(char const* name, lockstep::app::Invocation const* invocation) {
    using namespace lockstep;
    using namespace lockstep::app;
    try {
        using Run = ExitCode (*)(Invocation const&);
        std::map<std::string_view, Run> const commands{
            {"train", train_command},
            {"evaluate", evaluate_command},
            {"generate", generate_command},
            {"predict", predict_command},
            {"plan", plan_command},
            {"check", check_command},
            {"estimate", estimate_command},
            {"bench step", bench_step_command},
            {"checkpoint export", export_script_command},
            {"checkpoint export first", export_first_command},
            {"checkpoint export named", export_named_command},
            {"checkpoint export graph", export_graph_command},
            {"checkpoint quantise", quantise_command},
            {"export check", export_check_command},
            {"federate init", federate_init_command},
            {"federate round", federate_round_command},
            {"federate simulate", federate_simulate_command},
            {"replay", replay_command},
            {"bisect", bisect_command},
            {"search", search_run_command},
            {"models", models_command},
            {"tasks", tasks_command}};
        return static_cast<int>(commands.at(name)(*invocation));
    } catch (...) {
        auto const error = current_error();
        std::cerr << "lockstep: " << error.what() << std::endl;
        return static_cast<int>(error.code());
    }
}
