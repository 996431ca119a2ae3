#include "deck_and_model.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "checkpoint/safetensors.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"

#include <utility>

#include "../agreed_words.hpp"
#include "deck_on_all_ranks.hpp"
#include "model_file.hpp"
#include "saved_deck.hpp"

namespace lockstep::app {

namespace {

/// Collective  over `world`
void require_model(comm::Communicator const& world, std::string const& named) {
    comm::agree(world, "looking at the model", [&] {
        if (!world.is_root() || !std::filesystem::is_regular_file(named)) {
            return;
        }
        static_cast<void>(File::open_read(named)); // what cannot be read is told as such
        if (!is_hdf5(named) && !checkpoint::is_safetensors(named)) {
            throw Error(ExitCode::usage,
                        {named,
                         "it is neither a checkpoint, a best.h5 or a safetensors file nor the "
                         "directory of a run",
                         "Name such a file; to use other weights, name a deck before them"});
        }
    });
}

} // namespace

DeckAndModel begin_with_model(monitor::CommandContext& context, Options const& options,
                              Invocation const& invocation, std::filesystem::path const& out) {
    auto words = agreed_words(context.world, options, invocation.arguments);
    auto named = words.positions.back();
    if (words.positions.size() > 1) {
        auto begun = begin_with_deck(context, options, invocation, 1);
        return {std::move(begun.deck), model_file(context.world, named), std::move(named)};
    }
    require_model(context.world, named);
    auto path = model_file(context.world, named);
    auto const file = checkpoint::verify_together(context.world, path);
    return {begin_with_saved_deck(context, file, words.keys, out), std::move(path),
            std::move(named)};
}

} // namespace lockstep::app
