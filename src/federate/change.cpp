#include "federate/change.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::federate {

EncodedChange encoded_change(ModelVector const& from, ModelVector const& to,
                             ChangeForm const& form) {
    if (from.fingerprint() != to.fingerprint()) {
        throw Error(ExitCode::data,
                    {"the trained model does not match the federation's model",
                     "its weights have different names or shapes",
                     "Remove this round's run directory, and run the same command again"});
    }
    EncodedChange change;
    std::vector<double> values;
    double squares = 0;
    auto const is_buffer = from.buffers();
    for (std::size_t i = 0; i < from.values.size(); ++i) {
        auto const value =
            form.keeps_buffers && is_buffer[i]
                ? 0
                : static_cast<double>(to.values[i]) - static_cast<double>(from.values[i]);
        values.push_back(value);
        squares += value * value;
    }
    change.norm = std::sqrt(squares);
    if (!std::isfinite(change.norm)) {
        throw Error(ExitCode::data,
                    {"the trained model contains a value that is not finite",
                     "such a value cannot be added to the changes of other sites",
                     "Check this site's data. If the data is correct, ask the coordinator to begin "
                     "a federation with a lower learning rate"});
    }
    auto const shrunk = form.clip > 0 && change.norm > form.clip ? form.clip / change.norm : 1.0;
    auto const& point = form.fixed_point;
    auto const rounding =
        form.clip > 0 ? FixedPoint::Rounding::toward_zero : FixedPoint::Rounding::nearest;
    for (auto const value : values) {
        auto const within = std::clamp(value * shrunk, -point.range, point.range);
        change.clipped += within == value * shrunk ? 0 : 1;
        change.words.push_back(point.encoded(within * form.weight, rounding));
    }
    return change;
}

std::string fault_of_change(std::vector<std::uint32_t> const& words, std::size_t values,
                            ChangeForm const& form) {
    if (words.size() != values) {
        return concat("it has ", words.size(), " values, but the model has ", values);
    }
    constexpr double rounded = 1e-6;
    auto const& point = form.fixed_point;
    double squares = 0;
    for (auto const word : words) {
        auto const value = point.decoded(word) / form.weight;
        if (std::abs(value) > point.range + 1 / (point.scale * form.weight)) {
            return concat("it changes a weight by ", value, ", beyond the federation's range of ",
                          point.range);
        }
        squares += value * value;
    }
    auto const norm = std::sqrt(squares);
    return form.clip > 0 && norm > form.clip * (1 + rounded)
               ? concat("the norm of its change is ", norm, ", beyond the federation's clip of ",
                        form.clip)
               : "";
}

} // namespace lockstep::federate
