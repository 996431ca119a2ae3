#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fields.hpp"

namespace lockstep::serve {

/// The steps of a run by columns: every number that a record of a step has, in single precision,
/// which is more than a screen shows. A step that is told again takes back what was told of it and
/// of later ones.
///
/// Units  times: seconds since 1970, never decreasing
class Series {
  public:
    struct Column {
        std::string name;
        std::vector<float> values; ///< one a row; not told: not a number
    };

    /// Appends a row. `fields`: of its record, in the order of the line, which is the same in most.
    void append(std::int64_t step, double time, std::span<Field const> fields);
    /// Takes back all steps after `step`.
    void drop_after(std::int64_t step);

    std::size_t rows() const noexcept { return steps_.size(); }
    std::span<std::int64_t const> steps() const noexcept { return steps_; }
    std::span<double const> times() const noexcept { return times_; }
    std::span<Column const> columns() const noexcept { return columns_; }
    Column const* column(std::string_view name) const;
    /// Grows whenever rows are taken back.
    std::uint64_t revision() const noexcept { return revision_; }

  private:
    Column* column_for(std::string_view name, std::size_t place);

    std::vector<std::int64_t> steps_;
    std::vector<double> times_;
    std::vector<Column> columns_;
    std::vector<std::size_t> guesses_; ///< by place in a line: the column that it was last time
    std::uint64_t revision_ = 0;
};

} // namespace lockstep::serve
