#include "model_files/saved_model.hpp"

#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "checkpoint/weights.hpp"
#include "data/facts_text.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "model_files/enough_weights.hpp"
#include "model_files/plain_deck.hpp"
#include "model_files/quantised_file.hpp"
#include "model_files/stored_deck.hpp"
#include "nn/export_script.hpp"

#include <algorithm>
#include <tuple>

namespace lockstep::train {

namespace {

/// Exported files take observations as the model does.
std::string remark_on_observations(config::Deck const& deck) {
    auto const scale = deck.task.own.find("observation-scale");
    return scale == deck.task.own.end() || scale->second == "1"
               ? std::string()
               : concat("warning: the exported file does not apply task.observation-scale = ",
                        scale->second, ". Multiply observations by it");
}

} // namespace

Workload open_by_data(config::Deck deck, checkpoint::VerifiedFile const& file) {
    deck.data.validation.clear();
    deck.data.test.clear();
    deck.model = evaluated_model(std::move(deck.model));
    if (trimmed(deck.data.train).empty() && !task::is_played(deck.task)) {
        auto const was =
            stored_deck(checkpoint::open_weights(file)->record(), file.path()).data.train;
        throw Error(ExitCode::usage,
                    {"data.train is not set",
                     concat("samples such as those that the model of ", file.path().string(),
                            " was trained on are needed, and a file's deck does not choose which "
                            "files are read",
                            was.empty() ? "" : concat(" (it has data.train = ", was, ")")),
                     "Add --data.train FILE"});
    }
    auto datasets = open_datasets(deck);
    datasets.origin = Origin{facts_of(file), data_of(file.path()), data::Use::as_it_is};
    return open_workload(deck, std::move(datasets), [](double) {});
}

Workload open_model_of(config::Deck const& deck, checkpoint::VerifiedFile const& file) {
    auto const record = checkpoint::open_weights(file)->record();
    auto const facts = facts_of(record, file.path());
    if (facts.inputs.empty() || task::is_played(deck.task)) {
        auto work = open_by_data(deck, file);
        work.remarks.push_back(remark_on_observations(deck));
        std::erase(work.remarks, "");
        return work;
    }
    Workload work;
    work.facts = facts;
    work.samples = task::Samples::of(facts);
    work.samples.masked = deck.task.kind == "language" && facts.targets.size() > 1;
    work.task = task::make_task_of(deck, work.samples);
    require_enough_weights(deck.model, model_interface(deck, work.samples, *work.task), file);
    work.model = another_model(deck, work);
    bool const has_deck = !record.deck.empty();
    auto const trained = has_deck ? stored_deck(record, file.path()).data : deck.data;
    for (auto const& [key, own, known] :
         {std::tuple("data.inputs", deck.data.inputs, trained.inputs),
          std::tuple("data.targets", deck.data.targets, trained.targets)}) {
        if (own != known) {
            work.remarks.push_back(concat("warning: ", key, " = ", own,
                                          " is not used: the model was trained with ", key, " = ",
                                          known));
        }
    }
    bool const named = !has_deck || deck.data.train != trained.train;
    std::unique_ptr<data::Dataset> train;
    try {
        train = open_dataset(deck, named ? deck.data.train : "");
    } catch (Error const& error) {
        if (has_deck || error.code() != ExitCode::no_input) {
            throw;
        } // a deck for weights alone may name a training set that is not here
    }
    if (train) {
        work.remarks.push_back(
            read_as(*train, concat("data.train = ", deck.data.train), facts, data_of(file.path())));
        std::erase(work.remarks, "");
    }
    return work;
}

std::vector<std::string> export_script(config::Deck const& deck,
                                       checkpoint::VerifiedFile const& file,
                                       std::filesystem::path const& out) {
    auto const plain = plain_deck(deck);
    auto const work = open_model_of(plain, file);
    load_weights(*work.model, file);
    auto const facts = facts_of(file);
    nn::export_script(*work.model, model_interface(plain, work.samples, *work.task),
                      facts == data::Facts{} ? std::string() : data::text_of(facts), out);
    auto remarks = work.remarks;
    if (!facts.target_mean.empty()) {
        remarks.emplace_back("the outputs of the script are normalised, as its inputs are: "
                             "multiply them by target_std, and add target_mean, of the facts in "
                             "the file. ONNX and C files do that themselves");
    }
    return remarks;
}

namespace {

/// Without what only matters in training, and with forms that have operators of their own.
config::Deck evaluation_deck(config::Deck deck) {
    deck = plain_deck(std::move(deck));
    if (deck.model.name == "lmu-asr") {
        deck.model.own["form"] = "recurrent"; // instead of Fourier transforms
    }
    return deck;
}

std::vector<lower::ExportInput> inputs_of(Workload const& work, std::int64_t rows) {
    auto const& inputs = work.samples.inputs;
    bool const ragged = std::ranges::any_of(inputs, &data::FieldInfo::ragged);
    if (inputs.size() > 1 && ragged) {
        throw Error(ExitCode::usage, {"this model cannot be exported",
                                      "the model takes several inputs, and some of them have a "
                                      "different number of rows for each sample",
                                      "Use --format safetensors and load the weights by name"});
    }
    if (ragged != (rows > 0)) {
        throw Error(
            ExitCode::usage,
            ragged ? ErrorText{"--rows is not set",
                               "the samples of this model have different numbers of rows, but an "
                               "exported model takes samples with a fixed number of rows",
                               "Add --rows N with the number of rows of a sample"}
                   : ErrorText{concat("--rows ", rows),
                               "all samples of this model have the same size", "Leave out --rows"});
    }
    std::vector<lower::ExportInput> found;
    for (auto const& info : inputs) {
        found.push_back({info, rows});
    }
    found.front().mean = work.facts.mean;
    found.front().std = work.facts.std;
    found.front().channels_last = work.facts.channels_last;
    return found;
}

} // namespace

SavedModel open_saved_model(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                            std::int64_t rows) {
    auto const plain = evaluation_deck(deck);
    auto work = open_model_of(plain, file);
    SavedModel saved{.model = work.model,
                     .inputs = inputs_of(work, rows),
                     .class_names = work.samples.class_names,
                     .facts = work.facts,
                     .remarks = work.remarks,
                     .quantised = is_quantised(file)};
    if (saved.quantised) {
        auto const interface = model_interface(plain, work.samples, *work.task);
        saved.model = open_quantised(work.model, interface, file);
    } else {
        load_weights(*work.model, file);
    }
    return saved;
}

std::unique_ptr<data::Dataset> samples_for(SavedModel const& saved, config::Data const& data,
                                           std::string const& files,
                                           std::vector<std::string>& remarks) {
    auto set = std::make_unique<data::Dataset>(dataset_options(data, files));
    auto known = saved.facts;
    known.scale_known = true; // as the exported file has it
    auto const named = concat("--data ", files);
    auto const* const whose = "the model's training data";
    auto const type = saved.inputs.front().info.type;
    auto const differs = set->input_type() == type
                             ? data::difference(set->facts(), known, whose)
                             : concat("its inputs are of type ", h5::name_of(set->input_type()),
                                      ", but the exported file takes ", h5::name_of(type));
    if (!differs.empty()) {
        throw Error(ExitCode::usage, does_not_fit(named, whose, differs).text());
    }
    remarks.push_back(scale_as(*set, named, known, whose));
    std::erase(remarks, "");
    return set;
}

} // namespace lockstep::train
