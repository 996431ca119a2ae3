#include "app/command.hpp"
#include "base/escaped.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "checkpoint/content.hpp"
#include "checkpoint/noted_keys.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/weights.hpp"
#include "data/facts_text.hpp"
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
            .about = "Shows the contents of a checkpoint, of a model (best.h5, int8 or "
                     "safetensors), of a file of outputs, or of the newest checkpoint of a run."};
}

std::string text_of(checkpoint::Record const& record, char const* note) {
    auto const found = record.notes.find(note);
    return found == record.notes.end() ? "not known" : found->second;
}

/// One line for a thing that is known, whatever a file says of it.
template <class... Parts>
void print_fact(std::string name, Parts const&... parts) {
    name.resize(12, ' ');
    std::cout << "  " << name << escaped_line(concat(parts...)) << "\n";
}

/// What the model was trained on, in files that tell.
void print_samples(checkpoint::Record const& record, std::filesystem::path const& path) {
    if (auto const facts = record.notes.find(checkpoint::facts_note); facts != record.notes.end()) {
        print_fact("samples", data::summary_of(data::facts_of_text(facts->second, path.string())));
    }
}

/// What weights without a deck note of their model.
void print_noted(checkpoint::Record const& record, std::filesystem::path const& path) {
    auto const keys = checkpoint::noted_keys(record, path);
    if (!keys.empty()) {
        auto const task = keys.find("task.kind");
        print_fact("model", keys.at("model.name"), task == keys.end() ? "" : ", task ",
                   task == keys.end() ? "" : task->second);
    }
}

void print_record(checkpoint::Record const& record, std::filesystem::path const& path) {
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
    auto const rounds = integer(checkpoint::federated_rounds);
    bool const of_sites = rounds >= 0; // what else it tells of a run is about the first model
    if (of_sites) {
        print_fact("federation", rounds == 0 ? std::string("the first model, before any round")
                                             : concat("the model after round ", rounds));
    } else {
        print_fact("run", value("run.name"), ", step ", count_text(integer("step")), ", ",
                   amount_of(integer("epoch"), "epoch"), " done");
    }
    print_fact("model", value("model.name"), ", task ", value("task.kind"));
    if (!of_sites) {
        print_fact("data", value("data.train"));
    }
    print_samples(record, path);
    print_fact("optimizer", value("optimizer.name"), ", learning rate ",
               value("optimizer.learning-rate"));
    if (of_sites) {
        print_fact("replicas", value("run.replicas"), " of batch ", value("data.batch"),
                   " at each site");
        print_fact("deck", "to print it: h5dump -d /record/deck FILE");
        return;
    }
    print_fact("replicas", integer("replicas"), " of batch ", value("data.batch"), ", seed ",
               integer("seed"));
    if (integer("best_step") >= 0 && record.reals.contains("best")) {
        print_fact("best", text_of(record, "best_metric"), " ", fixed(record.reals.at("best"), 4),
                   " at step ", count_text(integer("best_step")));
    }
    if (record.reals.contains("epsilon") && record.reals.contains("delta")) {
        print_fact("privacy", "epsilon ", fixed(record.reals.at("epsilon"), 4), " at delta ",
                   record.reals.at("delta"), " after ", count_text(integer("step")), " steps");
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

void print_shape(std::string const& name, h5::Type type, h5::Shape const& shape) {
    std::cout << "    " << escaped_line(name) << " " << h5::name_of(type) << " "
              << h5::shape_text(shape) << "\n";
}

/// The layers in int8, which are not among the tensors: "features.conv1.weight 16 1 3 3".
void print_int8_layers(checkpoint::Record const& record) {
    std::vector<std::pair<std::string, h5::Shape>> layers;
    std::uint64_t weights = 0;
    for (auto const& line : split(text_of(record, checkpoint::layers_note), '\n')) {
        auto const words = split(line, ' ');
        h5::Shape shape;
        for (std::size_t i = 1; i < words.size(); ++i) {
            shape.push_back(number_of<std::uint64_t>(words[i]).value_or(0));
        }
        if (!shape.empty()) {
            weights += h5::elements(shape);
            layers.emplace_back(words.front(), std::move(shape));
        }
    }
    print_fact("layers", layers.size(), " of ", count_text(static_cast<std::int64_t>(weights)),
               " weights, ", text_of(record, checkpoint::quantised_note));
    for (auto const& [name, shape] : layers) {
        print_shape(name, h5::Type::i8, shape);
    }
    print_fact("used by", "lockstep evaluate, and lockstep checkpoint export to onnx and c");
}

void print_heading(std::filesystem::path const& path, std::string const& kind) {
    std::cout << path.string() << ": " << kind << ", "
              << bytes_text(std::filesystem::file_size(path)) << "\n";
}

ExitCode info_of_outputs(checkpoint::VerifiedFile const& file) {
    checkpoint::Reader const reader(file);
    print_heading(file.path(), checkpoint::name_of(checkpoint::Content::outputs));
    print_fact("task", text_of(reader.record(), "task"));
    for (auto const& view : reader.views()) {
        print_shape(view.path, reader.array(view.source).type, view.shape);
    }
    print_fact("used by", "distill.outputs");
    return ExitCode::ok;
}

ExitCode info(std::filesystem::path const& path) {
    auto const file = checkpoint::VerifiedFile::unchecked(path);
    bool const safetensors = checkpoint::is_safetensors(path);
    auto const content = checkpoint::content_of(File::open_read(path));
    if (!safetensors && content == checkpoint::Content::outputs) {
        return info_of_outputs(file);
    }
    auto const weights = checkpoint::open_weights(file);
    auto const known = weights->quantised() ? checkpoint::Content::quantised : content;
    bool const of_sites = known == checkpoint::Content::model &&
                          weights->record().integers.contains(checkpoint::federated_rounds);
    print_heading(path, safetensors ? "a safetensors file"
                        : of_sites  ? "a global model of a federation"
                                    : checkpoint::name_of(known));
    if (!weights->record().deck.empty()) { // others' files tell nothing of a run
        print_record(weights->record(), path);
    } else {
        print_noted(weights->record(), path);
        print_samples(weights->record(), path);
    }
    if (weights->quantised()) {
        print_int8_layers(weights->record());
    }
    std::uint64_t numbers = 0;
    for (auto const& entry : weights->entries()) {
        numbers += h5::elements(entry.shape);
    }
    std::cout << (weights->quantised() ? "  others      " : "  tensors     ")
              << weights->entries().size() << " of "
              << count_text(static_cast<std::int64_t>(numbers)) << " numbers\n";
    for (auto const& entry : weights->entries()) {
        print_shape(entry.name, entry.type, entry.shape);
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
