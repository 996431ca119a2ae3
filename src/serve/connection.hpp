#pragma once

#include "base/awake_clock.hpp"
#include "base/clock.hpp"
#include "base/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api.hpp"
#include "gate.hpp"
#include "run_list.hpp"

namespace lockstep::serve {

/// One connection of a browser: requests one after the other, or a stream of events.
class Connection {
  public:
    explicit Connection(Descriptor socket) : socket_(std::move(socket)) {}

    int descriptor() const noexcept { return socket_.get(); }
    bool wants_to_read() const noexcept; ///< not while it could not answer
    bool wants_to_write() const noexcept { return sent_ < output_.size(); }
    bool is_over() const noexcept { return over_; }
    bool was_let_in() const noexcept { return let_in_; }
    /// Whether this page was asked for less than `seconds` ago.
    bool loads_page(double seconds) const { return page_ && page_->seconds() < seconds; }
    bool follows(std::size_t run) const { return stream_ && told_.contains(run); }

    /// Reads what has arrived, and answers the requests that are complete.
    void read(Gate const& gate, RunList const& runs);
    /// Continues to send, and answers the requests that waited for that.
    void write(Gate const& gate, RunList const& runs);
    /// Adds news of the runs that a stream follows, and of the list, to the stream.
    void tell_news(RunList const& runs);
    /// Ends the connection if the other side is too slow to send a request or to read.
    void check_time();

  private:
    /// How much of a run the stream has sent.
    struct Told {
        std::uint64_t revision = 0;
        std::size_t rows = 0;
        std::size_t events = 0;
        std::uint64_t log = 0;
        Stopwatch since{};
    };

    void send();
    void answer_requests(Gate const& gate, RunList const& runs);
    void respond(Request const& request, Gate const& gate, RunList const& runs);
    void tell_of_run(Run const& run, std::size_t place, Told& told);

    Descriptor socket_;
    std::string input_;
    std::string output_;
    std::size_t sent_ = 0;          ///< bytes of it
    AwakeClock quiet_;              ///< since bytes came or went
    Stopwatch list_;                ///< since the list of runs was sent
    std::optional<Stopwatch> page_; ///< since the page was asked for
    bool stream_ = false;
    bool ends_after_output_ = false;
    bool over_ = false;
    bool let_in_ = false;
    std::map<std::size_t, Told> told_;
    std::map<std::size_t, std::string> overviews_; ///< as they were last sent
    std::vector<std::uint64_t> searches_; ///< bytes of their journals, when they were last sent
};

} // namespace lockstep::serve
