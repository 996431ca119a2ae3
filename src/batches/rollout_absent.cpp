#include "batches/make_data_module.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::train {

std::unique_ptr<DataModule> make_rollout_module(DataModuleParts const& parts) {
    throw Error(ExitCode::unavailable,
                {"task.kind = " + parts.deck.task.kind,
                 "this task needs an environment, but this program was built without reinforcement "
                 "learning",
                 "Build the program again with -DLOCKSTEP_WITH_RL=ON"});
}

} // namespace lockstep::train
