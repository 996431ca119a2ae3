#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fields.hpp"

namespace lockstep::serve {

/// The value of a column that a step does not have.
constexpr auto not_told = std::numeric_limits<float>::quiet_NaN();

/// Least, largest and sum of values; values that are not finite are ignored.
struct Summary {
    float min = std::numeric_limits<float>::infinity();
    float max = -std::numeric_limits<float>::infinity();
    double sum = 0;
    std::uint32_t count = 0;

    void add(std::span<float const> values);
    void add(Summary const& other);
};

/// The steps of a run by columns: every number in a step's record, in single precision, which is
/// more than a screen shows. A step that is recorded again replaces its earlier record, and those
/// of later steps.
///
/// Units  times: seconds since 1970, never decreasing
class Series {
  public:
    static constexpr std::size_t block_rows = 64;

    struct Column {
        std::string name;
        std::vector<float> values;        ///< one a row
        std::vector<Summary> summaries{}; ///< of the first blocks of rows
    };

    /// The index of this column, which is added if it is new; nothing where there are too many
    /// columns, or the name is too long.
    std::optional<std::size_t> place_of(std::string_view name);
    /// Appends a row: a value for each column.
    void append(std::int64_t step, double time, std::span<float const> row);
    /// Appends all rows of another series.
    void append(Series const& more);
    /// Removes all steps after `step`.
    void drop_after(std::int64_t step);

    std::size_t rows() const noexcept { return steps_.size(); }
    std::span<std::int64_t const> steps() const noexcept { return steps_; }
    std::span<double const> times() const noexcept { return times_; }
    std::span<Column const> columns() const noexcept { return columns_; }
    Column const* column(std::string_view name) const;
    /// The summary of the rows [first, last).
    static Summary summary(Column const& column, std::size_t first, std::size_t last);
    /// Grows whenever rows are removed.
    std::uint64_t revision() const noexcept { return revision_; }

  private:
    void summarize();

    std::vector<std::int64_t> steps_;
    std::vector<double> times_;
    std::vector<Column> columns_;
    std::uint64_t revision_ = 0;
};

} // namespace lockstep::serve
