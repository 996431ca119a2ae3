#include "config/alternatives.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "config/values.hpp"
#include "lockstep/base/error.hpp"

#include <string_view>

namespace lockstep::config {

namespace {

using Values = std::map<std::string, Written>;

bool says_something(Written const& written) {
    return !written.value.empty() && number_of<double>(written.value) != 0.0;
}

/// The number that the source of this layer gives a key, or that it had before a later one set it.
std::int64_t number_in(Values const& values, std::string const& key, int layer) {
    auto const found = values.find(key);
    if (found == values.end() || found->second.layer < layer) {
        return 0;
    }
    auto const& written = found->second;
    return number_of<std::int64_t>(written.layer > layer ? written.before : written.value)
        .value_or(0);
}

/// Whether a batch is the part of a replica of the batch over all, as the deck of a run has it.
bool are_one_batch(Values const& values, Written const& batch, Written const& global) {
    auto const of_replica = number_of<std::int64_t>(batch.value).value_or(0);
    auto const replicas = number_in(values, "run.replicas", batch.layer);
    return replicas > 0 &&
           number_of<std::int64_t>(global.value) == std::optional(of_replica * replicas);
}

std::string place_of(std::string const& key, Written const& written) {
    return concat(key, " = ", shown(written.value), " (", written.origin, ")");
}

void refuse(Alternatives const& pair, Written const& one, Written const& other) {
    throw Error(ExitCode::usage,
                {concat(place_of(pair.one, one), " and ", place_of(pair.other, other)), pair.why,
                 "Keep one of the two"});
}

} // namespace

std::vector<Alternatives> alternatives() {
    return {
        {"data.batch", "data.global-batch", "both set the batch"},
        {"schedule.warmup-epochs", "schedule.warmup-steps", "both set the length of the warm-up"},
        {"distill.teacher", "distill.outputs", "a run can learn from only one of the two"},
        {"task.metric", "checkpoint.best", ""},
    };
}

std::vector<ReplacedKey> replaced_keys(Values const& values) {
    std::vector<ReplacedKey> replaced;
    for (auto const& pair : alternatives()) {
        auto const one = values.find(pair.one);
        auto const other = values.find(pair.other);
        if (one == values.end() || other == values.end() || !says_something(one->second) ||
            !says_something(other->second)) {
            continue;
        }
        auto const [first, second] = std::pair{one->second.layer, other->second.layer};
        if (first != second) {
            bool const is_one = first < second;
            replaced.push_back({is_one ? pair.one : pair.other, is_one ? pair.other : pair.one});
        } else if (first != printed_layer && *pair.why != '\0' &&
                   !(pair.one == std::string_view("data.batch") &&
                     are_one_batch(values, one->second, other->second))) {
            refuse(pair, one->second, other->second);
        }
    }
    return replaced;
}

} // namespace lockstep::config
