#include "batches/model_facts.hpp"

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "data/facts_text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/task/task.hpp"
#include "nn/export_script.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace lockstep::train {

namespace {

using Json = nlohmann::json;

std::vector<double> numbers(std::string const& text) {
    auto const json = json_or_nothing(text);
    bool const whole = json.is_array() &&
                       std::ranges::all_of(json, [](Json const& each) { return each.is_number(); });
    return whole ? json.get<std::vector<double>>() : std::vector<double>{};
}

/// What files of earlier versions tell.
data::Facts earlier_facts(checkpoint::Record const& record) {
    data::Facts facts;
    auto const note = [&](char const* name) -> std::string const* {
        auto const found = record.notes.find(name);
        return found == record.notes.end() ? nullptr : &found->second;
    };
    if (auto const* const classes = note("classes")) {
        facts.classes = split(*classes, '\n');
        facts.class_count = std::ssize(facts.classes);
    }
    auto const* const mean = note("input_mean");
    auto const* const std = note("input_std");
    if (mean != nullptr && std != nullptr) {
        facts.mean = numbers(*mean);
        facts.std = numbers(*std);
        facts.scale_known = facts.mean.size() == facts.std.size();
    }
    return facts;
}

} // namespace

void note_facts(checkpoint::Record& record, data::Facts const& facts) {
    record.notes[checkpoint::facts_note] = data::text_of(facts);
}

data::Facts facts_of(checkpoint::Record const& record, std::filesystem::path const& file) {
    auto const found = record.notes.find(checkpoint::facts_note);
    if (found != record.notes.end()) {
        return data::facts_of_text(found->second, file.string());
    }
    auto facts = earlier_facts(record);
    data::require_sound(facts, file.string());
    return facts;
}

data::Facts facts_of(checkpoint::VerifiedFile const& file) {
    return facts_of(checkpoint::open_weights(file)->record(), file.path());
}

std::optional<data::Facts> facts_of_program(std::string const& kind,
                                            std::filesystem::path const& file) {
    auto const text = kind == "script" ? nn::facts_in_script(file) : std::string();
    return text.empty() ? std::nullopt : std::optional(data::facts_of_text(text, file.string()));
}

data::Facts facts_of(rl::Spaces const& spaces) {
    return {.inputs = task::Samples::of(spaces).inputs, .classes = spaces.names};
}

void complete_vocabularies(std::vector<data::FieldInfo>& fields,
                           std::vector<data::FieldInfo> const& known) {
    for (std::size_t i = 0; i < std::min(fields.size(), known.size()); ++i) {
        if (fields[i].whole && fields[i].vocabulary == 0) {
            fields[i].vocabulary = known[i].vocabulary;
        }
    }
}

std::string data_of(std::filesystem::path const& file) {
    return concat("the training data of ", file.string());
}

Error does_not_fit(std::string const& named, std::string const& whose, std::string const& why) {
    return {ExitCode::data,
            {concat(named, " does not fit ", whose), why,
             "Name the same datasets in the same order (data.inputs, data.targets), and import all "
             "data sets in the same way: images with the same --size and --gray, tables with the "
             "same --columns and --type, texts with the same --tokenizer. To give a data set other "
             "classes, run lockstep data import "
             "hdf5 OLD NEW --classes A,B,C"}};
}

std::string misfit_allowed(std::string const& named, std::string const& whose,
                           std::string const& why) {
    return concat("warning: ", named, " does not fit ", whose, ": ", why);
}

std::string scale_as(data::Dataset& set, std::string const& named, data::Facts const& known,
                     std::string const& whose) {
    if (!known.scale_known) {
        return {};
    }
    auto told = data::other_scale(set.facts(), named, known, whose);
    if (set.mean() != known.mean || set.std() != known.std ||
        set.facts().channels_last != known.channels_last) {
        set.scale_as(known.mean, known.std, known.channels_last);
    }
    return told;
}

std::string read_as(data::Dataset& set, std::string const& named, data::Facts const& known,
                    std::string const& whose) {
    if (auto const differs = data::difference(set.facts(), known, whose); !differs.empty()) {
        throw does_not_fit(named, whose, differs);
    }
    return scale_as(set, named, known, whose);
}

} // namespace lockstep::train
