#include "saved_deck.hpp"

#include "base/notice.hpp"
#include "base/text.hpp"
#include "checkpoint/noted_keys.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "config/idle_keys.hpp"
#include "device/device.hpp"
#include "lockstep/base/error.hpp"
#include "model_files/model_changes.hpp"
#include "model_files/same_code.hpp"
#include "monitor/watchdog.hpp"
#include "nn/find_kind.hpp"
#include "nn/named_code.hpp"

#include <algorithm>
#include <utility>

#include "../output_file.hpp"

namespace lockstep::app {

namespace {

/// What a file says of code holds for the training that it comes from, which alone runs a compiled
/// step. A script is only told of: it computes.
void leave_out_compiled_step(config::DeckSource& source) {
    if (auto const found = source.values().find("model.compiled"); found != source.values().end()) {
        source.set(found->first, {.value = "none", .origin = found->second.origin});
    }
}

/// Where the samples of the training lay is no place to read here, unless the user names it.
void leave_out_places(config::Deck& deck, config::DeckSource const& source,
                      std::string const& file) {
    for (auto const& [key, set] : {std::pair("data.train", &deck.data.train),
                                   std::pair("data.validation", &deck.data.validation),
                                   std::pair("data.test", &deck.data.test)}) {
        if (auto const found = source.values().find(key);
            found != source.values().end() && found->second.origin == file) {
            set->clear();
        }
    }
}

void tell_of_scripts(config::DeckSource const& source, config::Deck const& deck,
                     std::string const& file, Warn const& warn) {
    for (auto const& [key, script] : nn::named_scripts(deck)) {
        if (key == "model.file" && source.values().at(key).origin == file) {
            warn(concat(file, " names the TorchScript program ", script,
                        ", which this command runs"));
        }
    }
}

void warn_of_other_code(config::Deck const& deck, checkpoint::Record const& record,
                        std::string const& file, Warn const& warn) {
    train::compare_code(record, deck, nn::code_hashes(deck),
                        [&](auto const& what, auto const& why) {
                            warn(concat("warning: ", what, " is not the library that ", file,
                                        " was trained with: ", why));
                        });
}

/// Weights alone do not say what to make of them.
Error no_deck_in(std::filesystem::path const& file) {
    bool const safetensors = checkpoint::is_safetensors(file);
    return {ExitCode::data,
            {concat(file.string(), " does not say which model it holds"),
             safetensors
                 ? "it is a safetensors file of another program, which has weights and no deck"
                 : "it has weights and no deck",
             concat("Name the checkpoint or best.h5 of the run. To use these weights, add a deck: "
                    "lockstep evaluate DECK ",
                    file.string(), ", or set model.weights = ", file.string(),
                    " in the deck of lockstep train")}};
}

Error no_task_in(std::filesystem::path const& file) {
    return {ExitCode::data,
            {concat(file.string(), " does not say which task its model learnt"),
             "the version of this program that exported the file noted the model alone",
             "Add --task.kind KIND (lockstep tasks lists all tasks), or export the model again"}};
}

/// The device of the training may not be here: one that is here does as well.
std::vector<std::string> keys_with_device(std::vector<std::string> keys) {
    for (std::string const key : {"--run.device", "--run.devices"}) {
        bool const named = std::ranges::any_of(keys, [&](std::string const& word) {
            return word == key || word.starts_with(key + "=");
        });
        if (!named) {
            keys.insert(keys.end(), {key, key == "--run.device" ? "auto" : "all"});
        }
    }
    return keys;
}

} // namespace

void require_code_named_here(config::DeckSource const& source, config::Deck const& deck,
                             std::string const& file) {
    for (auto const& [key, value] : nn::named_code(deck)) {
        if (source.values().at(key).origin == file) {
            throw Error(ExitCode::usage,
                        {concat(file, " sets ", key, " = ", value),
                         concat(key == "model.operators"  ? "a library of operators"
                                : nn::names_plugin(value) ? "a plug-in"
                                                          : "native code",
                                " is loaded only if you name it yourself, not because a file names "
                                "it"),
                         concat("Add --", key, " ", value, " if you trust this library")});
        }
    }
}

config::Deck saved_deck(checkpoint::VerifiedFile const& file, std::vector<std::string>& words,
                        std::filesystem::path const& out, Warn const& warn) {
    config::DeckSource source;
    auto const deck = concat("the deck in ", file.path().string());
    auto const record = checkpoint::open_weights(file)->record();
    source.read_printed(record.deck, deck);
    auto const noted = checkpoint::noted_keys(record, file.path());
    for (auto const& [key, value] : noted) {
        source.set(key, {.value = value, .origin = deck});
    }
    leave_out_compiled_step(source);
    words = source.take_options(words);
    if (record.deck.empty() && !source.values().contains("model.name")) {
        throw no_deck_in(file.path());
    }
    if (!noted.empty() && !source.values().contains("task.kind")) {
        throw no_task_in(file.path());
    }
    auto parsed = source.parse();
    if (!out.empty()) {
        require_not_named(out, parsed, DeckFrom::file);
    }
    leave_out_places(parsed, source, deck);
    for (auto const& sentence : config::ignored_values(source, parsed)) {
        warn(sentence);
    }
    require_code_named_here(source, parsed, deck);
    tell_of_scripts(source, parsed, deck, warn);
    warn_of_other_code(parsed, record, file.path().string(), warn);
    if (auto const warning = train::warning_of_model_changes(parsed, file); !warning.empty()) {
        warn(warning);
    }
    return parsed;
}

config::Deck begin_with_saved_deck(monitor::CommandContext& context,
                                   checkpoint::VerifiedFile const& file,
                                   std::vector<std::string> const& keys,
                                   std::filesystem::path const& out) {
    auto const& world = context.world;
    config::Deck deck;
    comm::agree(world, "reading the deck of the model", [&] {
        auto words = keys_with_device(keys);
        deck = saved_deck(file, words, out,
                          world.is_root() ? Warn(notice) : Warn([](std::string const&) {}));
    });
    context.watchdog.set_patience(static_cast<double>(deck.communication.timeout_seconds));
    context.session.bind_device(train::device_of_rank(world, deck.run));
    return deck;
}

void tell(std::vector<std::string> const& remarks) {
    std::ranges::for_each(remarks, notice);
}

} // namespace lockstep::app
