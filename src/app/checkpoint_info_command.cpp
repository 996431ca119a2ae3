#include "app/command.hpp"
#include "base/text.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/weights.hpp"
#include "h5/element_type.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck_source.hpp"

#include <iostream>

#include "checkpoint_files.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

Options checkpoint_info_options(NothingTold&) {
    return {.command = "lockstep checkpoint info",
            .positions = {"FILE|RUN", 1, 1},
            .about = "Shows the contents of a checkpoint, of a best.h5, or of the newest "
                     "checkpoint of a run."};
}

std::string text_of(checkpoint::Record const& record, char const* note) {
    auto const found = record.notes.find(note);
    return found == record.notes.end() ? "not known" : found->second;
}

/// A line for a thing that is known.
template <class... Parts>
void print_fact(std::string name, Parts const&... parts) {
    name.resize(12, ' ');
    std::cout << "  " << name << concat(parts...) << "\n";
}

void print_record(checkpoint::Record const& record) {
    config::DeckSource deck;
    deck.read_printed(record.deck, "the deck");
    auto const value = [&](char const* key) {
        auto const found = deck.values().find(key);
        return found == deck.values().end() || found->second.value.empty() ? std::string("none")
                                                                           : found->second.value;
    };
    auto const integer = [&](char const* name) {
        auto const found = record.integers.find(name);
        return found == record.integers.end() ? std::int64_t{-1} : found->second;
    };
    print_fact("run", value("run.name"), ", step ", count_text(integer("step")), ", ",
               amount_of(integer("epoch"), "epoch"), " done");
    print_fact("model", value("model.name"), ", task ", value("task.kind"));
    print_fact("data", value("data.train"));
    print_fact("optimizer", value("optimizer.name"), ", learning rate ",
               value("optimizer.learning-rate"));
    print_fact("replicas", integer("replicas"), " of batch ", value("data.batch"), ", seed ",
               integer("seed"));
    if (integer("best_step") >= 0 && record.reals.contains("best")) {
        print_fact("best", text_of(record, "best_metric"), " ", fixed(record.reals.at("best"), 4),
                   " at step ", count_text(integer("best_step")));
    }
    print_fact("written", text_of(record, "time"), ", by version ", text_of(record, "version"),
               " on ", text_of(record, "ranks"),
               text_of(record, "ranks") == "1" ? " rank of " : " ranks of ",
               text_of(record, "hosts"));
    for (auto const& [name, text] : record.notes) {
        if (name.starts_with("hash of ")) { // a plug-in, or libraries of operators
            print_fact("library", name.substr(8), ", hash ", text);
        }
    }
    if (record.notes.contains("forced")) {
        print_fact("forced", text_of(record, "forced"));
    }
    print_fact("deck", "to print it: h5dump -d /record/deck FILE");
}

ExitCode info(std::filesystem::path const& path) {
    auto const file = checkpoint::VerifiedFile::unchecked(path);
    auto const* const kind = checkpoint::is_safetensors(path)  ? "safetensors file"
                             : checkpoint::is_model_file(path) ? "model"
                                                               : "checkpoint";
    auto const weights = checkpoint::open_weights(file);
    std::cout << path.string() << ": a " << kind << ", "
              << bytes_text(std::filesystem::file_size(path)) << "\n";
    if (!weights->record().deck.empty()) { // others' files tell nothing of a run
        print_record(weights->record());
    }
    std::uint64_t numbers = 0;
    for (auto const& entry : weights->entries()) {
        numbers += h5::elements(entry.shape);
    }
    std::cout << "  tensors     " << weights->entries().size() << " of "
              << count_text(static_cast<std::int64_t>(numbers)) << " numbers\n";
    for (auto const& entry : weights->entries()) {
        std::cout << "    " << entry.name << " " << h5::name_of(entry.type) << " "
                  << h5::shape_text(entry.shape) << "\n";
    }
    return ExitCode::ok;
}

} // namespace

ExitCode checkpoint_info_command(Invocation const& invocation) {
    return info(files_of(positions_of(checkpoint_info_options, invocation)[0], false).front());
}

std::string checkpoint_info_help(HelpWords const&) {
    return help_of(checkpoint_info_options);
}

} // namespace lockstep::app
