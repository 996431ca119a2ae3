#include "series.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::serve {

namespace {

constexpr std::size_t max_columns = 256;
constexpr std::size_t max_name = 100;

} // namespace

void Summary::add(std::span<float const> values) {
    for (float const value : values) {
        bool const counts = std::fabs(value) <= std::numeric_limits<float>::max();
        min = std::min(min, counts ? value : min);
        max = std::max(max, counts ? value : max);
        sum += counts ? value : 0;
        count += counts ? 1 : 0;
    }
}

void Summary::add(Summary const& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    sum += other.sum;
    count += other.count;
}

std::optional<std::size_t> Series::place_of(std::string_view name) {
    auto const found = std::ranges::find(columns_, name, &Column::name);
    if (found != columns_.end()) {
        return static_cast<std::size_t>(found - columns_.begin());
    }
    if (columns_.size() == max_columns || name.size() > max_name) {
        return std::nullopt;
    }
    columns_.push_back({std::string(name), std::vector<float>(rows(), not_told)});
    return columns_.size() - 1;
}

void Series::append(std::int64_t step, double time, std::span<float const> row) {
    if (!steps_.empty() && steps_.back() >= step) {
        drop_after(step - 1);
    }
    double const newest = times_.empty() ? 0 : times_.back();
    steps_.push_back(step);
    times_.push_back(std::isfinite(time) ? std::max(time, newest) : newest);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        columns_[i].values.push_back(row[i]);
    }
}

void Series::append(Series const& more) {
    if (more.rows() == 0) {
        return;
    }
    if (!steps_.empty() && steps_.back() >= more.steps_.front()) {
        drop_after(more.steps_.front() - 1);
    }
    for (auto const& column : more.columns_) {
        place_of(column.name);
    }
    double const newest = times_.empty() ? 0 : times_.back();
    steps_.insert(steps_.end(), more.steps_.begin(), more.steps_.end());
    for (double const time : more.times_) {
        times_.push_back(std::max(time, newest));
    }
    for (auto& column : columns_) {
        if (auto const* const told = more.column(column.name)) {
            column.values.insert(column.values.end(), told->values.begin(), told->values.end());
        } else {
            column.values.resize(rows(), not_told);
        }
    }
    summarize();
}

/// Summarizes the blocks that are complete now.
void Series::summarize() {
    for (auto& column : columns_) {
        std::span<float const> const values(column.values);
        for (auto done = column.summaries.size(); done < rows() / block_rows; ++done) {
            column.summaries.emplace_back().add(values.subspan(done * block_rows, block_rows));
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
        column.summaries.resize(std::min(column.summaries.size(), kept / block_rows));
    }
    ++revision_;
}

Series::Column const* Series::column(std::string_view name) const {
    auto const found = std::ranges::find(columns_, name, &Column::name);
    return found == columns_.end() ? nullptr : &*found;
}

Summary Series::summary(Column const& column, std::size_t first, std::size_t last) {
    std::span<float const> const values(column.values);
    auto const first_block = (first + block_rows - 1) / block_rows;
    auto const last_block = std::min(last / block_rows, column.summaries.size());
    Summary result;
    if (first_block >= last_block) {
        result.add(values.subspan(first, last - first));
        return result;
    }
    result.add(values.subspan(first, first_block * block_rows - first));
    for (auto block = first_block; block < last_block; ++block) {
        result.add(column.summaries[block]);
    }
    result.add(values.subspan(last_block * block_rows, last - last_block * block_rows));
    return result;
}

} // namespace lockstep::serve
