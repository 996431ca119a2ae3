#include "model_file.hpp"

#include "base/own_file.hpp"
#include "base/text.hpp"
#include "checkpoint/store.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"

namespace lockstep::app {

std::string model_file(comm::Communicator const& world, std::string const& named) {
    auto path = named;
    comm::agree(world, "looking for the model", [&] {
        if (!world.is_root() || !std::filesystem::is_directory(named)) {
            return;
        }
        auto const run = std::filesystem::path(named);
        auto const checkpoints = checkpoint::Store(run / "checkpoints", 1).list();
        if (std::filesystem::exists(run / "best.h5")) {
            path = run / "best.h5";
            require_own_choice(path);
        } else if (!checkpoints.empty()) {
            path = checkpoints.front().path;
            require_own_choice(path, run / "checkpoints");
        } else {
            throw Error(ExitCode::no_input, {concat("no model in ", named),
                                             "the directory has neither best.h5 nor a checkpoint",
                                             "Name a checkpoint or best.h5 file, or the directory "
                                             "of a run that has such a file"});
        }
    });
    comm::broadcast_text(world, path);
    return path;
}

} // namespace lockstep::app
