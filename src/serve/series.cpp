#include "series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::serve {

namespace {

constexpr std::size_t max_columns = 256;
constexpr std::size_t max_name = 100;
constexpr auto not_told = std::numeric_limits<float>::quiet_NaN();

bool is_value(Field const& field) {
    return (field.kind == Field::Kind::number || field.kind == Field::Kind::truth) &&
           field.key != "step";
}

} // namespace

void Series::append(std::int64_t step, double time, std::span<Field const> fields) {
    if (!steps_.empty() && steps_.back() >= step) {
        drop_after(step - 1);
    }
    double const newest = times_.empty() ? 0 : times_.back();
    steps_.push_back(step);
    times_.push_back(std::isfinite(time) ? std::max(time, newest) : newest);
    for (auto& column : columns_) {
        column.values.push_back(not_told);
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (is_value(fields[i])) {
            if (auto* const column = column_for(fields[i].key, i)) {
                column->values.back() = static_cast<float>(fields[i].number);
            }
        }
    }
}

void Series::drop_after(std::int64_t step) {
    auto const kept = static_cast<std::size_t>(
        std::upper_bound(steps_.begin(), steps_.end(), step) - steps_.begin());
    if (kept == steps_.size()) {
        return;
    }
    steps_.resize(kept);
    times_.resize(kept);
    for (auto& column : columns_) {
        column.values.resize(kept);
    }
    ++revision_;
}

Series::Column const* Series::column(std::string_view name) const {
    auto const found = std::ranges::find(columns_, name, &Column::name);
    return found == columns_.end() ? nullptr : &*found;
}

Series::Column* Series::column_for(std::string_view name, std::size_t place) {
    if (place >= guesses_.size()) {
        guesses_.resize(place + 1, max_columns);
    }
    auto& guess = guesses_[place];
    if (guess < columns_.size() && columns_[guess].name == name) {
        return &columns_[guess];
    }
    auto const found = std::ranges::find(columns_, name, &Column::name);
    if (found == columns_.end()) {
        if (columns_.size() == max_columns || name.size() > max_name) {
            return nullptr;
        }
        columns_.push_back({std::string(name), std::vector<float>(rows(), not_told)});
        guess = columns_.size() - 1;
    } else {
        guess = static_cast<std::size_t>(found - columns_.begin());
    }
    return &columns_[guess];
}

} // namespace lockstep::serve
