#include "input_scale.hpp"

#include "lockstep/base/number.hpp"
#include "lockstep/base/text.hpp"

#include <limits>
#include <sstream>

namespace lockstep::train {

namespace {

constexpr char const* mean_note = "input_mean";
constexpr char const* std_note = "input_std";

/// With all digits: what is read back are the same bits.
std::string text_of(std::vector<double> const& values) {
    std::ostringstream text;
    text.precision(std::numeric_limits<double>::max_digits10);
    for (std::size_t i = 0; i < values.size(); ++i) {
        text << (i == 0 ? "" : ",") << values[i];
    }
    return text.str();
}

/// Nothing where it is no list of numbers.
std::optional<std::vector<double>> values_of(std::string const& text) {
    std::vector<double> values;
    for (auto const& part : text.empty() ? std::vector<std::string>{} : split(text, ',')) {
        auto const value = number_of<double>(part);
        if (!value) {
            return std::nullopt;
        }
        values.push_back(*value);
    }
    return values;
}

} // namespace

void note_scale(checkpoint::Record& record, data::Dataset const& training) {
    record.notes[mean_note] = text_of(training.mean());
    record.notes[std_note] = text_of(training.std());
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
