#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "series.hpp"

namespace lockstep::serve {

/// Rows of steps, and the line after them, which is not a step's line that `StepLines` can read.
struct Stretch {
    Series rows;
    std::string_view last_step; ///< the line of the last row
    std::string_view other;     ///< empty at the end
};

/// Splits whole lines into stretches; large texts on several threads.
std::vector<Stretch> stretches_of(std::string_view lines);

/// Reads the lines of steps. A run writes mostly the same keys in the same order, so the text
/// between the values is compared with the previous line, and only a line that differs is split
/// into fields: a run of a million steps has half a gigabyte of them.
class StepLines {
  public:
    explicit StepLines(Series& series) : series_(series) {}

    /// Adds `line` to the series if it is a step's record without lists, objects and escaped
    /// letters; returns whether it is.
    bool take(std::string_view line);

  private:
    enum class Use { column, step, time, nothing };
    struct Value {
        std::string before; ///< the text between the previous value and this one
        Use use = Use::nothing;
        std::size_t column = 0;
    };
    struct Row {
        double step = -1;
        double time = not_told;
    };

    bool is_alike(std::string_view line, Row& row);
    bool learn(std::string_view line, Row& row);
    bool take_value(std::string_view& rest, Value const& value, Row& row);

    Series& series_;
    std::vector<Value> values_;
    std::string after_; ///< the text after the last value
    std::vector<Field> fields_;
    std::vector<float> columns_; ///< of the row
};

} // namespace lockstep::serve
