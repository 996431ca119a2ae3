#pragma once

#include "base/json_line.hpp"
#include "lockstep/monitor/run_records.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::monitor {

/// A text that comes onto terminals and into tables: on one line, and without a terminal's
/// commands.
std::string printable(std::string text);

/// A line of the records, of which texts come onto terminals and into tables.
class RunRecords::Line : public JsonLine {
  public:
    using JsonLine::JsonLine;

    std::string event() const { return text("event"); }
    std::int64_t whole(std::string const& key, std::int64_t otherwise = 0) const {
        return JsonLine::whole(key, otherwise);
    }
    std::string text(std::string const& key) const { return printable(JsonLine::text(key)); }
    std::vector<std::string> texts(std::string const& key) const;
    std::uint64_t hash(char const* key) const;

    StepRecord step() const;
    ResourceRecord resources() const;
    ProfileRecord profile() const;
    /// Nothing where the line has none whose rows are as long as it has classes.
    train::Confusion confusion() const;
    /// All numbers but the known ones are metrics of the task.
    MeasuredRecord measured() const;
};

} // namespace lockstep::monitor
