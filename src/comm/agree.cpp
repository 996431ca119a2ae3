#include "comm/agree.hpp"

#include "base/text.hpp"
#include "comm/activity_scope.hpp"
#include "comm/collectives.hpp"
#include "comm/native.hpp"
#include "comm/progress.hpp"

#include <array>

namespace lockstep::comm {

std::optional<Error> failure_of(std::function<void()> const& work) {
    try {
        work();
        return std::nullopt;
    } catch (...) {
        return current_error();
    }
}

void agree(Communicator const& comm, std::string_view phase, std::function<void()> const& work) {
    auto const failure = [&] {
        ActivityScope const activity(comm, phase);
        return failure_of(work);
    }();
    agree_on(comm, phase, failure);
}

void agree_on(Communicator const& comm, std::string_view phase,
              std::optional<Error> const& failure) {
    int const mine = failure ? comm.rank() : comm.size();
    int const first = all_reduce(comm, mine, Reduce::minimum);
    if (first == comm.size()) {
        return;
    }
    std::string message;
    if (comm.rank() == first) {
        auto const& text = failure->text();
        auto const step = current_step(comm);
        bool const untold = step > 0 && phase.find("step") == std::string_view::npos;
        message = concat(static_cast<int>(failure->code()), unit_separator, text.what,
                         unit_separator, text.why, unit_separator, text.next, unit_separator,
                         "rank ", first, " (", host_name(), ", ", comm.device(), ") in ", phase,
                         untold ? concat(" at step ", step) : std::string());
    }
    broadcast_text(comm, message, first);
    auto parts = split(message, unit_separator);
    parts.resize(5);
    throw AgreedError(static_cast<ExitCode>(std::stoi(parts[0])), {parts[1], parts[2], parts[3]},
                      first, parts[4]);
}

std::string place_of_rank(Communicator const& comm, int rank) {
    auto place = concat("rank ", rank, " (", host_name(), ", ", comm.device(), ")");
    broadcast_text(comm, place, rank);
    return place;
}

std::string host_name() {
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    check(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
    return {name.data(), static_cast<std::size_t>(length)};
}

} // namespace lockstep::comm
