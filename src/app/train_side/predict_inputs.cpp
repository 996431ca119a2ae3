#include "predict_inputs.hpp"

#include "base/file_kind.hpp"
#include "base/letter_case.hpp"
#include "base/partial_file.hpp"
#include "base/some_of.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "import/image_source.hpp"
#include "import/import.hpp"
#include "import/series_source.hpp"
#include "import/speech_source.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <memory>

namespace lockstep::app {

namespace {

namespace fs = std::filesystem;

bool is_table(fs::path const& path) {
    return path.extension() == ".csv" || path.extension() == ".tsv";
}

Error refused(std::string const& what, std::string const& why, std::string const& next) {
    return {ExitCode::usage, {what, why, next}};
}

void require_there(std::vector<std::string> const& words) {
    for (auto const& word : words) {
        if (!fs::exists(word)) {
            throw Error(ExitCode::no_input, {word, "there is no such file or directory",
                                             "Name HDF5 files, a table, or pictures or recordings, "
                                             "or directories of them"});
        }
    }
}

/// Whether the model's samples are pictures as an import stores them: channels, height and width,
/// or, from an IDX file, height and width.
bool takes_pictures(data::Facts const& facts) {
    if (facts.inputs.size() != 1) {
        return false;
    }
    auto const& input = facts.inputs.front();
    return input.type == h5::Type::u8 && !input.ragged &&
           (input.shape.size() == 2 || (input.shape.size() == 3 && input.shape[0] <= 4));
}

/// An option that says how pictures are taken; empty: none was given.
std::string option_of_pictures(PredictInputOptions const& options) {
    return options.center_crop       ? "--center-crop"
           : options.shorter > 0     ? "--shorter"
           : options.alpha != "drop" ? "--alpha"
                                     : "";
}

std::unique_ptr<import::ImportSource> pictures(std::vector<std::string> const& words,
                                               data::Facts const& facts,
                                               PredictInputOptions const& as) {
    auto shape = facts.inputs.front().shape;
    bool const flat = shape.size() == 2;
    if (flat) {
        shape.insert(shape.begin(), 1);
    }
    import::ImageImport options{.source = words.front(),
                                .width = shape[2],
                                .height = shape[1],
                                .center_crop = as.center_crop,
                                .shorter = as.shorter,
                                .gray = shape[0] <= 2,
                                .flat = flat,
                                .alpha = shape[0] % 2 == 0     ? import::Alpha::keep
                                         : as.alpha == "blend" ? import::Alpha::blend
                                                               : import::Alpha::drop,
                                .unlabelled = true};
    options.more = {words.begin() + 1, words.end()};
    return import::image_source(options);
}

void require_effect(PredictInputOptions const& options, bool stored, data::Facts const& facts) {
    auto const of_pictures = option_of_pictures(options);
    if (!of_pictures.empty() && (stored || !takes_pictures(facts))) {
        throw refused(of_pictures,
                      stored ? "the samples of HDF5 files are used as they are"
                             : "the model takes no pictures",
                      concat("Leave ", of_pictures, " out"));
    }
    if (options.shorter > 0 && !options.center_crop) {
        throw refused("--shorter was given without --center-crop",
                      "pictures that are not cut become as large as the training's",
                      "Add --center-crop, or leave out --shorter");
    }
    if (stored && options.skip_bad) {
        throw refused("--skip-bad", "the samples of HDF5 files are read or refused together",
                      "Leave --skip-bad out");
    }
}

std::unique_ptr<import::ImportSource> recordings(std::vector<std::string> const& words,
                                                 data::Facts const& facts) {
    auto const& shape = facts.inputs.front().shape;
    import::SpeechImport options{.source = words.front(),
                                 .raw = shape.empty(),
                                 .bands = shape.empty() ? 40 : shape.front(),
                                 .rate = static_cast<int>(facts.sample_rate),
                                 .unlabelled = true};
    options.more = {words.begin() + 1, words.end()};
    return import::speech_source(options);
}

std::unique_ptr<import::ImportSource> table(std::vector<std::string> const& words,
                                            data::Facts const& facts) {
    if (words.size() > 1) {
        throw refused(concat(words[0], " and ", words[1]), "one table is predicted at a time",
                      "Join the tables, or predict one after the other");
    }
    return import::series_source({.source = words.front(),
                                  .columns = facts.columns,
                                  .doubles = facts.inputs.front().type == h5::Type::f64,
                                  .unlabelled = true});
}

/// As the model's own samples were imported.
std::unique_ptr<import::ImportSource> source_of(std::vector<std::string> const& words,
                                                data::Facts const& facts,
                                                PredictInputOptions const& options) {
    if (facts.inputs.size() != 1) {
        throw refused(words.front(),
                      facts.inputs.empty()
                          ? "the model's file does not say what its samples are"
                          : "the model takes several inputs, which only HDF5 files hold",
                      "Name an HDF5 file with the model's inputs");
    }
    auto const& input = facts.inputs.front();
    if (std::ranges::any_of(words, [](auto const& word) { return is_table(word); })) {
        if (input.ragged || input.shape.size() != 1 || facts.columns.empty()) {
            throw refused(words.front(), "the model was not trained on the rows of a table",
                          "Name samples such as those that the model was trained on");
        }
        return table(words, facts);
    }
    if (facts.sample_rate > 0 && input.ragged && input.shape.size() <= 1) {
        return recordings(words, facts);
    }
    if (takes_pictures(facts)) {
        return pictures(words, facts, options);
    }
    if (input.shape.size() == 1 && !input.ragged && !facts.columns.empty()) {
        throw refused(
            words.front(),
            concat("the model takes the rows of a table with the columns ", some_of(facts.columns)),
            "Name a table that ends with .csv or .tsv, or an HDF5 file");
    }
    throw refused(words.front(),
                  concat("the model takes ", h5::shape_text(input.shape),
                         " values for each sample, which are neither a picture, nor a recording, "
                         "nor the row of a table"),
                  "Name an HDF5 file with the model's inputs");
}

} // namespace

PredictInputs::PredictInputs(comm::Communicator const& world, std::vector<std::string> const& words,
                             data::Facts const& facts, PredictInputOptions const& options) {
    bool stored = false;
    comm::agree(world, "looking for the samples", [&] {
        require_there(words);
        auto const is_stored = [](auto const& word) {
            return fs::is_regular_file(word) && is_hdf5(word);
        };
        stored = std::ranges::all_of(words, is_stored);
        if (!stored && std::ranges::any_of(words, is_stored)) {
            throw refused(joined(words, ", "), "HDF5 files and others are not predicted together",
                          "Predict them one after the other");
        }
        require_effect(options, stored, facts);
    });
    samples_.named = joined(words, ", ");
    if (stored) {
        std::vector<std::string> quoted;
        for (auto const& word : words) {
            quoted.push_back(word.find(',') == std::string::npos ? word : concat("\"", word, "\""));
        }
        samples_.files = joined(quoted, ",");
        return;
    }
    auto token = new_token();
    comm::broadcast_text(world, token);
    imported_ = concat(options.output.string(), ".samples-", token, ".h5");
    removes_ = world.is_root();
    if (removes_) {
        removal_.emplace([path = imported_] {
            remove_tree(path.string() + ".importing");
            remove_tree(path);
        });
    }
    import_them(world, words, facts, options);
}

void PredictInputs::import_them(comm::Communicator const& world,
                                std::vector<std::string> const& words, data::Facts const& facts,
                                PredictInputOptions const& options) {
    std::unique_ptr<import::ImportSource> source;
    comm::agree(world, "reading the list of samples",
                [&] { source = source_of(words, facts, options); });
    auto const report = import::import_set(
        world, *source,
        {.out = imported_, .skip_bad = options.skip_bad, .doing = "reading the samples"},
        [](std::string const&, std::int64_t, std::int64_t) {});
    remarks_ = source->remarks();
    remarks_.insert(remarks_.end(), report.notes.begin(), report.notes.end());
    if (!report.skipped.empty()) {
        remarks_.push_back(concat("skipped ", count_text(std::ssize(report.skipped)), " of ",
                                  count_text(source->items()), " that cannot be read:"));
        remarks_.insert(remarks_.end(), report.skipped.begin(), report.skipped.end());
    }
    samples_.files = concat("\"", imported_.string(), "\"");
}

PredictInputs::~PredictInputs() {
    if (removes_ && !imported_.empty()) {
        std::error_code none;
        fs::remove(imported_, none);
    }
}

} // namespace lockstep::app
