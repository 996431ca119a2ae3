#include "trace/clock_offset.hpp"

#include "base/clock.hpp"
#include "comm/messages.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace lockstep::trace {

namespace {

constexpr int max_rounds = 100;
constexpr int min_rounds = 10; ///< with each of many ranks
constexpr int rounds_of_all = 20000;
// On a busy host all of the rounds may be interrupted: then it takes more.
constexpr std::int64_t short_round_trip_ns = 100'000;
constexpr double more_rounds_s = 0.5; ///< of all ranks, at most

using Number = std::array<std::int64_t, 1>;

std::span<std::byte const> bytes_of(Number const& number) {
    return std::as_bytes(std::span(number));
}

std::span<std::byte> bytes_into(std::span<std::int64_t> numbers) {
    return std::as_writable_bytes(numbers);
}

std::int64_t round_trip(PingPong const& exchange) {
    return exchange.received - exchange.sent;
}

void ask(comm::Communicator const& comm, Recorder const& recorder, int rank, int rounds) {
    Stopwatch const watch;
    std::vector<PingPong> exchanges;
    auto shortest = std::numeric_limits<std::int64_t>::max();
    auto const is_last = [&] {
        return std::ssize(exchanges) + 1 >= rounds &&
               (shortest <= short_round_trip_ns || watch.seconds() > more_rounds_s / comm.size());
    };
    for (bool last = false; !last;) {
        last = is_last();
        PingPong exchange;
        Number word{last ? 1 : 0};
        exchange.sent = recorder.now_ns();
        comm::send(comm, bytes_of(word), rank);
        comm::receive(comm, bytes_into(word), rank);
        exchange.received = recorder.now_ns();
        exchange.answered = word[0];
        exchanges.push_back(exchange);
        shortest = std::min(shortest, round_trip(exchange));
    }
    auto const found = estimated_offset(exchanges);
    std::array const told{found.at_ns, found.offset_ns, found.error_ns};
    comm::send(comm, std::as_bytes(std::span(told)), rank);
}

ClockOffset answer(comm::Communicator const& comm, Recorder const& recorder) {
    for (bool last = false; !last;) {
        Number word{};
        comm::receive(comm, bytes_into(word), 0);
        last = word[0] != 0;
        word[0] = recorder.now_ns();
        comm::send(comm, bytes_of(word), 0);
    }
    std::array<std::int64_t, 3> told{};
    comm::receive(comm, bytes_into(told), 0);
    return {.at_ns = told[0], .offset_ns = told[1], .error_ns = told[2]};
}

} // namespace

ClockOffset estimated_offset(std::span<PingPong const> exchanges) {
    auto const best = std::ranges::min_element(exchanges, {}, round_trip);
    if (best == exchanges.end()) {
        return {};
    }
    auto const half = round_trip(*best) / 2;
    return {.at_ns = best->answered,
            .offset_ns = best->answered - (best->sent + half),
            .error_ns = half};
}

ClockCorrection::ClockCorrection(ClockOffset const& first, ClockOffset const& last)
    : first_(first) {
    if (last.at_ns > first.at_ns) {
        drift_ = static_cast<double>(last.offset_ns - first.offset_ns) /
                 static_cast<double>(last.at_ns - first.at_ns);
    }
}

std::int64_t ClockCorrection::corrected(std::int64_t time_ns) const {
    auto const drifted = drift_ * static_cast<double>(time_ns - first_.at_ns);
    return time_ns - first_.offset_ns - static_cast<std::int64_t>(drifted);
}

ClockOffset measure_clock_offset(comm::Communicator const& comm, Recorder const& recorder) {
    if (!comm.is_root()) {
        return answer(comm, recorder);
    }
    auto const rounds = std::clamp(rounds_of_all / comm.size(), min_rounds, max_rounds);
    for (int rank = 1; rank < comm.size(); ++rank) {
        ask(comm, recorder, rank, rounds);
    }
    return {.at_ns = recorder.now_ns()};
}

} // namespace lockstep::trace
