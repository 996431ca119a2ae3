#include "lockstep/base/error.hpp"
#include "report/tensorboard.hpp"

namespace lockstep::report {

std::unique_ptr<train::Observer> make_tensorboard(config::Deck const&) {
    throw Error(ExitCode::unavailable,
                {"monitor.tensorboard = true", "the program was built without protobuf",
                 "Run ./bootstrap deps and build again, or set monitor.tensorboard = false"});
}

} // namespace lockstep::report
