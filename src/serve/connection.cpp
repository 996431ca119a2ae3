#include "connection.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <utility>

#include "run_files.hpp"

namespace lockstep::serve {

namespace {

constexpr std::size_t max_output = 4 << 20; ///< of who asks and does not read; a response on top
constexpr std::size_t max_new_rows = 2000;  ///< told one by one; more are read again by buckets
constexpr double max_quiet_s = 30;
constexpr double heartbeat_s = 10;
constexpr double overview_s = 1; ///< between looks at the state of all runs

} // namespace

bool Connection::wants_to_read() const noexcept {
    return stream_ || ends_after_output_ ||
           (input_.size() <= max_head_bytes && output_.size() < max_output);
}

void Connection::read(Gate const& gate, RunList const& runs) {
    char bytes[16 << 10];
    auto const got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        over_ = true;
        return;
    }
    if (got < 0 || stream_ || ends_after_output_) {
        return; // nothing more is heard
    }
    if (input_.empty()) { // a request has this long in all, however slowly it comes
        quiet_ = {};
    }
    input_.append(bytes, static_cast<std::size_t>(got));
    answer_requests(gate, runs);
}

void Connection::answer_requests(Gate const& gate, RunList const& runs) {
    while (!stream_ && !ends_after_output_ && output_.size() < max_output) {
        auto const bytes = head_bytes(input_);
        if ((bytes == 0 && input_.size() > max_head_bytes) || bytes > max_head_bytes) {
            output_ += wire_text(refusal(431, "The request is too long."), false, true);
            ends_after_output_ = true;
            return;
        }
        if (bytes == 0) {
            return;
        }
        auto const request = parsed_request(std::string_view(input_).substr(0, bytes));
        input_.erase(0, bytes);
        if (!request) {
            output_ += wire_text(refusal(400, "This request cannot be understood."), false, true);
            ends_after_output_ = true;
            return;
        }
        respond(*request, gate, runs);
    }
}

void Connection::respond(Request const& request, Gate const& gate, RunList const& runs) {
    auto const stopped = gate.stopped(request);
    auto const response = stopped ? *stopped : answer(request, runs);
    let_in_ = let_in_ || !stopped;
    if (!stopped && request.path == "/") {
        page_.emplace();
    }
    bool const stays = request.keep_alive && response.status < 400 && !response.stream;
    output_ += wire_text(response, stays, request.method != "HEAD");
    ends_after_output_ = !stays && !response.stream;
    if (response.stream && request.method == "HEAD") {
        ends_after_output_ = true;
    } else if (response.stream) {
        stream_ = true;
        for (auto const place : runs_of(request.asked("runs"), runs)) {
            auto const& run = runs[place];
            told_[place] = {run.revision(),
                            run.series().rows(),
                            run.events().size(),
                            log_bytes(run.directory()),
                            {}};
        }
        output_ += event_text("hello", "{}");
    }
}

void Connection::write(Gate const& gate, RunList const& runs) {
    send();
    if (output_.empty() && !over_) {
        answer_requests(gate, runs);
        send();
    }
}

void Connection::send() {
    if (output_.empty()) {
        return;
    }
    auto const sent =
        ::send(socket_.get(), output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        over_ = true;
        return;
    }
    if (sent > 0) {
        quiet_ = {};
        sent_ += static_cast<std::size_t>(sent);
    }
    if (sent_ == output_.size()) {
        output_.clear();
        output_.shrink_to_fit();
        sent_ = 0;
    }
    over_ = over_ || (output_.empty() && ends_after_output_);
}

void Connection::tell_news(RunList const& runs) {
    if (!stream_ || output_.size() > max_output) {
        return; // who reads slowly is told later, of all at once
    }
    bool const all = overviews_.empty() || list_.seconds() > overview_s;
    for (std::size_t place = 0; all && place < runs.size(); ++place) {
        list_.restart();
        auto text = overview_json(runs, place);
        auto& told = overviews_[place];
        if (told != text) {
            output_ += event_text("overview", text);
            told = std::move(text);
        }
    }
    searches_.resize(runs.searches().size(), 0);
    for (std::size_t place = 0; all && place < searches_.size(); ++place) {
        auto const bytes = search_bytes(runs.searches()[place]);
        if (std::exchange(searches_[place], bytes) != bytes) {
            output_ += event_text("search", concat("{\"search\":", place, "}"));
        }
    }
    for (auto& [place, told] : told_) {
        tell_of_run(runs[place], place, told);
    }
    if (output_.empty() && quiet_.seconds() > heartbeat_s) {
        output_ += event_text("heartbeat", "{}");
    }
}

void Connection::tell_of_run(Run const& run, std::size_t place, Told& told) {
    auto const& series = run.series();
    bool const again = told.revision != run.revision() || series.rows() < told.rows ||
                       run.events().size() < told.events ||
                       series.rows() > told.rows + max_new_rows;
    if (again && run.is_far_behind() && told.since.seconds() < overview_s) {
        return; // soon there is more to ask for
    }
    if (again) {
        output_ += event_text("again", concat("{\"run\":", place, "}"));
    } else if (!run.is_sampled()) { // after a sample, all is asked for again
        if (series.rows() > told.rows) {
            output_ += event_text("rows", rows_json(run, place, told.rows));
        }
        for (auto i = told.events; i < run.events().size(); ++i) {
            output_ += event_text(
                "event", concat("{\"run\":", place, ",\"event\":", run.events()[i].json, "}"));
        }
    }
    auto const log = log_bytes(run.directory());
    if (log != told.log) {
        output_ += event_text("log", concat("{\"run\":", place, ",\"end\":", log, "}"));
    }
    told = {run.revision(), series.rows(), run.events().size(), log, {}};
}

void Connection::check_time() {
    // A stream is told something at least every heartbeat, so silence means that nobody reads.
    over_ = over_ || quiet_.seconds() > max_quiet_s;
}

} // namespace lockstep::serve
