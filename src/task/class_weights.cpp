#include "class_weights.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::task {

namespace {

[[noreturn]] void refuse(std::string const& wanted, std::string const& why) {
    throw Error(ExitCode::usage,
                {concat("task.class-weights = ", wanted), why,
                 "Set task.class-weights to none, to one number for each class, or, if the data "
                 "has one class per sample, to balanced or median"});
}

std::vector<double> listed(std::string const& wanted, std::int64_t classes) {
    std::vector<double> weights;
    for (auto const& text : split(wanted, ',')) {
        auto const weight = number_of<double>(text);
        if (!weight || !std::isfinite(*weight) || *weight < 0) {
            refuse(wanted, concat("'", text, "' is not a weight"));
        }
        weights.push_back(*weight);
    }
    if (static_cast<std::int64_t>(weights.size()) != classes) {
        refuse(wanted, concat("there are ", classes, " classes, but ",
                              amount_of(weights.size(), "weight")));
    }
    return weights;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    auto const half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

} // namespace

std::vector<double> class_weights(std::string const& wanted,
                                  std::vector<std::int64_t> const& counts, std::int64_t classes) {
    std::vector<double> weights(static_cast<std::size_t>(classes), 1);
    if (wanted == "none") {
        return weights;
    }
    if (wanted != "balanced" && wanted != "median") {
        return listed(wanted, classes);
    }
    auto const total =
        static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    if (total == 0) {
        refuse(wanted, "this setting needs class counts, which are not known");
    }
    std::vector<double> shares;
    for (auto const count : counts) {
        if (count > 0) {
            shares.push_back(static_cast<double>(count) / total);
        }
    }
    auto const of_share_1 =
        wanted == "balanced" ? 1 / static_cast<double>(shares.size()) : median(shares);
    for (std::size_t c = 0; c < weights.size(); ++c) {
        auto const count = c < counts.size() ? counts[c] : 0;
        weights[c] = count == 0 ? 0 : of_share_1 * total / static_cast<double>(count);
    }
    return weights;
}

} // namespace lockstep::task
