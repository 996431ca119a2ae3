#include "arena/same_model.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::train {

void require_same_model(comm::Communicator const& world, Layout const& layout,
                        nn::Model const& model) {
    auto const own = concat(layout.text(), "model files with hash ", model.fingerprint());
    auto root = own;
    comm::broadcast_text(world, root);
    comm::agree(world, "comparing the models", [&] {
        if (own == root) {
            return;
        }
        auto const ours = split(own, '\n');
        auto const roots = split(root, '\n');
        std::size_t at = 0;
        while (at < ours.size() && at < roots.size() && ours[at] == roots[at]) {
            ++at;
        }
        auto const line = [at](auto const& lines) {
            return at < lines.size() ? lines[at] : std::string("nothing");
        };
        throw Error(
            ExitCode::usage,
            {"this rank's model differs from rank 0's",
             concat("this model has ", line(ours), " where rank 0's model has ", line(roots)),
             "Start the same program with the same deck and the same files on all hosts"});
    });
}

} // namespace lockstep::train
