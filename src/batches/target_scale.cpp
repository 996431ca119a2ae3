#include "batches/target_scale.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

namespace {

constexpr std::int64_t max_samples = 1000;
constexpr std::int64_t max_values = 1 << 20;
constexpr std::int64_t max_columns = 64; ///< of more values, all are one column
constexpr double far = 100;              ///< from 0 and from 1

/// The first target of evenly spaced samples.
std::vector<double> some_targets(data::Dataset const& train, std::int64_t of_sample) {
    auto const samples =
        std::min({train.samples(), max_samples, std::max<std::int64_t>(max_values / of_sample, 1)});
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < samples; ++i) {
        indices.push_back(i * train.samples() / samples);
    }
    auto const values = static_cast<std::size_t>(samples * of_sample);
    if (train.targets().front().whole) {
        std::vector<std::int64_t> wholes(values);
        train.read_targets(indices, wholes);
        return {wholes.begin(), wholes.end()};
    }
    std::vector<float> reals(values);
    train.read_targets(indices, reals);
    return {reals.begin(), reals.end()};
}

std::string name_of(data::Dataset const& train, std::int64_t column, std::int64_t columns) {
    auto const& names = train.declared_classes();
    return columns == 1 ? "the targets"
           : std::cmp_equal(names.size(), columns)
               ? concat("target ", names[static_cast<std::size_t>(column)])
               : concat("target ", column);
}

} // namespace

std::string target_scale_remark(data::Dataset const& train) {
    auto const& info = train.targets().front();
    auto const of_sample = static_cast<std::int64_t>(h5::elements(info.shape));
    if (info.ragged || of_sample == 0 || train.samples() < 2) {
        return {};
    }
    auto const values = some_targets(train, of_sample);
    auto const columns = of_sample <= max_columns ? of_sample : 1;
    for (std::int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        double count = 0;
        for (auto i = column; i < std::ssize(values); i += columns) {
            sum += values[static_cast<std::size_t>(i)];
            ++count;
        }
        auto const mean = sum / count;
        double squares = 0;
        for (auto i = column; i < std::ssize(values); i += columns) {
            auto const off = values[static_cast<std::size_t>(i)] - mean;
            squares += off * off;
        }
        auto const std = std::sqrt(squares / count);
        if (std == 0 || std > far || std < 1 / far || std::abs(mean) > far) {
            return concat("warning: ", name_of(train, column, columns), " ",
                          columns == 1 ? "have" : "has", " a mean of ", significant(mean, 4),
                          " and a standard deviation of ", significant(std, 4), ", in ",
                          amount_of(std::ssize(values) / of_sample, "sample"),
                          ": training begins far from such values, and losses and gradients have "
                          "another scale than learning rates are made for. Store (value - mean) / "
                          "standard deviation, and undo it in predictions");
        }
    }
    return {};
}

} // namespace lockstep::train
