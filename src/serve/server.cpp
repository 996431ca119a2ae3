#include "serve/server.hpp"

#include "base/clock.hpp"
#include "base/random_token.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <list>
#include <poll.h>
#include <sys/signalfd.h>

#include "connection.hpp"
#include "listener.hpp"

namespace lockstep::serve {

namespace {

constexpr std::size_t read_bytes = 16 << 20; ///< of a run, between two looks at the connections
constexpr int tick_ms = 200;
// Reading pauses, so that a browser on the same cores can start, and draw the page that it asked
// for.
constexpr double start_s = 1;
constexpr double page_s = 0.6;
constexpr double first_look_s = 0.3; ///< at samples of large runs, before the first request
constexpr double list_s = 5; ///< between looks for new runs, and at those that nobody follows
constexpr std::size_t max_connections = 128;

/// Signals that end the server, as something that poll can wait for.
Descriptor end_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (int const number : {SIGTERM, SIGINT, SIGHUP}) {
        struct sigaction action {};
        ::sigaction(number, nullptr, &action);
        if (action.sa_handler != SIG_IGN) { // by nohup, or a shell
            sigaddset(&signals, number);
        }
    }
    if (::sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) {
        throw system_error("cannot block signals", errno, "This is a bug; please report it");
    }
    Descriptor descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!descriptor.is_open()) {
        throw system_error("cannot wait for signals", errno,
                           "Raise the limit on open files (ulimit -n)");
    }
    return descriptor;
}

class Server {
  public:
    Server(RunList runs, Listener listener, Gate gate)
        : runs_(std::move(runs)), listener_(std::move(listener)), gate_(std::move(gate)),
          signals_(end_signals()) {}

    void run() {
        bool more = look_at_runs();
        while (wait(more && !loads_page() ? 0 : tick_ms)) {
            bool const was_behind = more;
            if ((more && !loads_page()) || tick_.seconds() * 1000 >= tick_ms) {
                more = look_at_runs();
            }
            if (tick_.seconds() * 1000 >= tick_ms || (was_behind && !more)) {
                tick_.restart();
                is_full_ = false;
                for (auto& connection : connections_) {
                    connection.tell_news(runs_);
                    connection.write(gate_, runs_);
                    connection.check_time();
                }
            }
            connections_.remove_if([](auto const& each) { return each.is_over(); });
        }
    }

  private:
    /// Waits for what comes and deals with it; false when a signal asks for the end.
    bool wait(int timeout_ms) {
        std::vector<pollfd> waits{{signals_.get(), POLLIN, 0},
                                  {is_full_ ? -1 : listener_.descriptor(), POLLIN, 0}};
        for (auto const& each : connections_) {
            int const events =
                (each.wants_to_read() ? POLLIN : 0) | (each.wants_to_write() ? POLLOUT : 0);
            waits.push_back({each.descriptor(), static_cast<short>(events), 0});
        }
        ::poll(waits.data(), waits.size(), timeout_ms);
        auto connection = connections_.begin();
        for (std::size_t i = 2; i < waits.size(); ++i, ++connection) {
            if ((waits[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                connection->read(gate_, runs_);
            }
            connection->write(gate_, runs_);
        }
        if ((waits[1].revents & POLLIN) != 0) {
            accept();
        }
        return (waits[0].revents & POLLIN) == 0;
    }

    void accept() {
        errno = 0;
        auto socket = listener_.accepted();
        if (!socket.is_open()) {
            // Whoever waits would wake this at once, again and again: they are looked at later.
            is_full_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            if (auto const one = stranger(); is_full_ && one != connections_.end()) {
                connections_.erase(one);
            }
            return;
        }
        if (connections_.size() >= max_connections) { // strangers make room first
            auto const one = stranger();
            connections_.erase(one == connections_.end() ? connections_.begin() : one);
        }
        connections_.emplace_back(std::move(socket));
    }

    std::list<Connection>::iterator stranger() {
        return std::ranges::find_if(connections_,
                                    [](auto const& each) { return !each.was_let_in(); });
    }

    bool loads_page() const {
        return started_.seconds() < start_s ||
               std::ranges::any_of(connections_,
                                   [](auto const& each) { return each.loads_page(page_s); });
    }

    bool is_followed(std::size_t run) const {
        return std::ranges::any_of(connections_,
                                   [&](auto const& each) { return each.follows(run); });
    }

    /// Reads what followed runs have written, and now and then what the others have; whether
    /// something is left to be read at once.
    bool look_at_runs() {
        auto const limit_s = first_ ? first_look_s : 0;
        if (first_ || list_.seconds() > list_s) {
            list_.restart();
            runs_.look_again();
            unread_.assign(runs_.size(), true);
            first_ = false;
        }
        bool more = false;
        auto const read = [&](std::size_t run) {
            unread_[run] = runs_[run].read(read_bytes);
            more = more || unread_[run];
        };
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if (is_followed(i)) {
                read(i);
            }
        }
        Stopwatch const watch;
        for (std::size_t i = 0; i < runs_.size() && (!more || watch.seconds() < limit_s); ++i) {
            next_ = (next_ + 1) % runs_.size(); // of the others, one after the other
            if (unread_[next_] && !is_followed(next_)) {
                read(next_);
            }
        }
        return more || std::ranges::find(unread_, true) != unread_.end();
    }

    RunList runs_;
    Listener listener_;
    Gate gate_;
    Descriptor signals_;
    std::list<Connection> connections_;
    std::vector<bool> unread_; ///< by run: there may be more
    std::size_t next_ = 0;     ///< of those that nobody follows, the one that was read last
    bool first_ = true;
    bool is_full_ = false; ///< no descriptor is left for one more connection
    Stopwatch started_;
    Stopwatch tick_;
    Stopwatch list_;
};

} // namespace

void serve(ServeOptions const& options, std::function<void(std::string const&)> const& announce) {
    RunList runs(options.paths, options.carbon);
    bool const by_socket = !options.socket.empty();
    auto listener =
        by_socket ? Listener::on_socket(options.socket) : Listener::on_port(options.port);
    auto const token = by_socket ? std::string() : random_token(24);
    auto const port = listener.port();
    Server server(std::move(runs), std::move(listener), Gate(token));
    announce(by_socket ? options.socket.string()
                       : concat("http://127.0.0.1:", port, "/?token=", token));
    server.run();
}

} // namespace lockstep::serve
