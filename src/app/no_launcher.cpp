#include "no_launcher.hpp"

#include "base/arrival.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::app {

void require_no_launcher(std::string const& command) {
    // A job script may be the only task of a step, but mpirun refuses to start below another.
    if (environment("OMPI_COMM_WORLD_SIZE") || launched_ranks() > 1) {
        throw Error(ExitCode::usage,
                    {concat("lockstep ", command, " was started by ",
                            torchrun_launched() ? "torchrun" : "mpirun or srun"),
                     "this command starts the ranks itself",
                     concat("Start it without a launcher: lockstep ", command, " DECK …")});
    }
}

} // namespace lockstep::app
