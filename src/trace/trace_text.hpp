#pragma once

#include "base/recorder.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::trace {

/// "rank-0003".
std::string rank_name(int rank);

/// A timeline of one rank in Chrome's trace event format, which Perfetto, chrome://tracing and
/// Holistic Trace Analysis read: a process, whose number is the rank's
/// plus 1, and a row for each of its threads.
class TraceText {
  public:
    struct Of {
        int rank = 0;
        std::string host;
        std::string device = "cpu";
        std::int64_t origin_ns = 0; ///< the time that becomes 0
    };
    /// A slice. `arguments`: members of a JSON object, without its braces.
    struct Slice {
        std::string name;
        std::string category;
        std::int64_t row = 0;
        std::int64_t begin_ns = 0;
        std::int64_t end_ns = 0;
        std::string arguments{};
    };
    /// An end of an arrow.
    struct Point {
        int rank = 0;
        std::int64_t row = 0;
        std::int64_t time_ns = 0;
    };

    /// Rows of threads that recorded scopes: the main thread's is 0.
    static constexpr std::int64_t communication_row = 90; ///< waits and exposed communication
    static constexpr std::int64_t travelling_row = 100;   ///< of bucket 0; each has its own
    static constexpr std::int64_t operators_row = 10000;  ///< of LibTorch's first thread

    explicit TraceText(Of of);

    /// The row in which a scope of a thread is shown: slices of one row must be nested.
    static std::int64_t row_of(RecordedThread const& thread, RecordedScope const& scope);

    /// Adds all scopes of a thread, unchanged: see Slice.
    void add(RecordedThread const& thread);
    void add(Slice const& slice);
    void name_row(std::int64_t row, std::string const& name);
    /// Adds an arrow between two slices, each of which encloses its point. `id`: unique to this
    /// arrow over all ranks.
    void add_arrow(std::string const& name, std::int64_t id, Point const& from, Point const& to);
    /// Adds a value over time.
    void add_counter(std::string const& name, std::int64_t time_ns,
                     std::vector<std::pair<std::string, double>> const& values);

    /// The events, with commas between them.
    std::string const& events() const noexcept { return text_; }
    /// The text of a complete file, which contains `facts`.
    std::string whole(std::vector<std::pair<std::string, std::string>> const& facts) const;
    /// The same for tools that read the files of all ranks of a job with `ranks` ranks.
    std::string whole_of_rank(std::vector<std::pair<std::string, std::string>> const& facts,
                              int ranks) const;

  private:
    void begin_event(std::string_view name, char kind, int rank, std::int64_t row);
    void append_time(std::int64_t time_ns);

    Of of_;
    std::string text_;
    std::vector<std::int64_t> named_; ///< rows
};

/// A text in double quotes, as JSON has it.
std::string json_text(std::string_view text);

/// What is written around the events of all ranks.
std::string trace_head();
std::string trace_tail(std::vector<std::pair<std::string, std::string>> const& facts);

} // namespace lockstep::trace
