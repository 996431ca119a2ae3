#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "series.hpp"

namespace lockstep::serve {

/// A record that is not a step's.
struct Event {
    std::string kind; ///< "validation"
    std::int64_t step = 0;
    std::string json; ///< the whole record, as one line
};

/// One run in the list of runs.
struct Overview {
    std::string state; ///< waiting, running, silent, finished, stopped or failed
    std::string reason;
    std::string model;
    std::int64_t ranks = 0;
    std::int64_t step = 0;
    std::int64_t total_steps = 0;
    double newest = 0; ///< seconds since 1970, of the newest record
};

/// A run, followed through its metrics.jsonl, which may be growing, on another host. It is read in
/// parts, so that the reader can do other things between them. Like `monitor::RunRecords`, but of
/// steps it keeps only columns.
class Run {
  public:
    explicit Run(std::filesystem::path directory);

    /// Reads on, at most `max_bytes`; returns whether there is more to be read. A file that was
    /// replaced or became shorter is read again from its start. A file that cannot be read at the
    /// moment counts as having nothing new.
    bool read(std::size_t max_bytes);

    std::filesystem::path const& directory() const noexcept { return directory_; }
    std::string const& name() const noexcept { return name_; }
    /// Until a large file has been read once: a sample of steps of the whole file.
    Series const& series() const noexcept { return sample_ ? sample_->series_ : series_; }
    std::deque<Event> const& events() const noexcept { return events_; }
    bool is_sampled() const noexcept { return sample_ != nullptr; }
    /// Grows whenever earlier data is withdrawn, or forgotten.
    std::uint64_t revision() const noexcept { return series_.revision() + revision_; }
    /// The newest record of a step, as one line of JSON; empty: none.
    std::string const& newest_step() const noexcept {
        return sample_ ? sample_->newest_step_ : newest_step_;
    }
    double read_share() const noexcept;  ///< of the file, 0 to 1
    bool is_far_behind() const noexcept; ///< much of the file is yet to be read
    std::int64_t bad_lines() const noexcept { return bad_lines_; }

    Overview overview() const;

  private:
    bool read_on(std::size_t max_bytes);
    void forget();
    void take_sample(int file);
    void take_lines(std::string_view lines);
    bool take_parsed(std::string_view line);
    void take_event(Event event);
    void forget_old_events();
    double silence_s() const;

    std::filesystem::path directory_;
    std::filesystem::path file_;
    std::string name_;
    std::uint64_t offset_ = 0; ///< of the first byte that was not read yet
    std::uint64_t seen_ = 0;   ///< bytes, with those of a line that has not ended
    std::uint64_t size_ = 0;
    std::string beginning_;   ///< the first bytes of the file that is read
    bool skips_line_ = false; ///< it skips the rest of a line that is too long
    std::unique_ptr<Run> sample_;
    Series series_;
    std::deque<Event> events_;
    std::size_t event_bytes_ = 0;
    std::string newest_step_;
    std::uint64_t revision_ = 0;
    std::int64_t bad_lines_ = 0;
    Overview overview_;
};

} // namespace lockstep::serve
