#include "input_scale.hpp"

#include "base/text.hpp"
#include "data/format.hpp"
#include "h5/element_type.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "spread.hpp"

namespace lockstep::import {

namespace {

constexpr std::uint64_t max_rows = 32;
constexpr std::uint64_t max_values = std::uint64_t{1} << 22;

/// Finite values of rows at equal distances.
std::vector<double> some_values(h5::File const& file, SourceField const& inputs) {
    auto const row = std::max<std::uint64_t>(h5::elements(inputs.kept().row), 1);
    auto const all = file.info(inputs.path()).shape.front();
    auto const rows = std::min({all, max_rows, std::max<std::uint64_t>(max_values / row, 1)});
    std::vector<double> values;
    std::vector<double> one(row);
    for (std::uint64_t i = 0; i < rows; ++i) {
        file.read_rows(inputs.path(), h5::Type::f64, {i * all / rows, 1},
                       std::as_writable_bytes(std::span(one)));
        std::ranges::copy_if(one, std::back_inserter(values),
                             [](double value) { return std::isfinite(value); });
    }
    return values;
}

} // namespace

std::string unscaled_text(h5::File const& file, SourceField const& inputs) {
    constexpr double large = 5;
    constexpr double small = 0.01;
    auto const type = inputs.kept().type;
    bool const are_tokens =
        type == h5::Type::i64 || type == h5::Type::u64 || file.exists(data::token_bytes_name);
    if (are_tokens || type == h5::Type::u8) { // which training divides by 255
        return {};
    }
    auto const values = some_values(file, inputs);
    auto const spread = spread_of(std::span<double const>(values));
    auto const std = values.empty() ? 0 : std::sqrt(spread.variance());
    bool const is_far = std::abs(spread.mean) > large || std > large || (std > 0 && std < small);
    if (values.empty() || !is_far) {
        return {};
    }
    bool const may_be_pixels = std::ranges::all_of(values, [](double value) {
        return value >= 0 && value <= 255 && std::trunc(value) == value;
    });
    return concat("warning: training takes dataset ", inputs.path(), " as it is, since ",
                  file.path().string(),
                  " has no attributes mean and std. Some of its values have "
                  "the mean ",
                  significant(spread.mean, 4), " and the standard deviation ", significant(std, 4),
                  ": models learn better from a mean near 0 and a standard deviation near 1. Give "
                  "--mean and --std",
                  may_be_pixels ? ", or --type u8 if these are pixels from 0 to 255, which "
                                  "training divides by 255"
                                : "");
}

} // namespace lockstep::import
