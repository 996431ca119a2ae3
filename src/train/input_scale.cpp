#include "input_scale.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace lockstep::train {

namespace {

using Json = nlohmann::json; // writes the digits that give the same bits again

constexpr char const* mean_note = "input_mean";
constexpr char const* std_note = "input_std";

/// Nothing where it is not a list of numbers.
std::optional<std::vector<double>> values_of(std::string const& text) {
    try {
        return Json::parse(text).get<std::vector<double>>();
    } catch (Json::exception const&) {
        return std::nullopt;
    }
}

} // namespace

void note_scale(checkpoint::Record& record, data::Dataset const& training) {
    record.notes[mean_note] = Json(training.mean()).dump();
    record.notes[std_note] = Json(training.std()).dump();
}

std::optional<InputScale> scale_of(checkpoint::Record const& record) {
    auto const mean = record.notes.find(mean_note);
    auto const std = record.notes.find(std_note);
    if (mean == record.notes.end() || std == record.notes.end()) {
        return std::nullopt;
    }
    auto means = values_of(mean->second);
    auto stds = values_of(std->second);
    bool const fit = means && stds && means->size() == stds->size();
    return fit ? std::optional(InputScale{std::move(*means), std::move(*stds)}) : std::nullopt;
}

} // namespace lockstep::train
