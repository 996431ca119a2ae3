#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "series.hpp"

namespace lockstep::serve {

/// Rows of steps, and the line behind them, which is none of a step that `StepLines` can read.
struct Stretch {
    Series rows;
    std::string_view last_step; ///< the line of the last row
    std::string_view other;     ///< empty at the end
};

/// Splits whole lines into stretches; large texts on several threads.
std::vector<Stretch> stretches_of(std::string_view lines);

/// Reads the lines of steps. A run writes mostly the same keys in the same order, so what lies
/// between the values is compared with the line before, and only a line that differs is split into
/// fields: a run of a million steps has half a gigabyte of them.
class StepLines {
  public:
    explicit StepLines(Series& series) : series_(series) {}

    /// Whether `line` was the record of a step without lists, objects and escaped letters. It is in
    /// the series now.
    bool take(std::string_view line);

  private:
    enum class Use { column, step, time, nothing };
    struct Value {
        std::string before; ///< what the line has between the value before and this one
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
    std::string after_; ///< what the line has behind its last value
    std::vector<Field> fields_;
    std::vector<float> columns_; ///< of the row
};

} // namespace lockstep::serve
