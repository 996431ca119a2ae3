#include "lockstep/monitor/collective_command.hpp"

#include "base/inject.hpp"
#include "base/recorder.hpp"
#include "base/start_limit.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/heartbeats.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "monitor/root_cause.hpp"
#include "monitor/start_failure.hpp"
#include "monitor/watchdog.hpp"

#include <iostream>
#include <optional>

#include "start_watch.hpp"

namespace lockstep::monitor {

namespace {

/// "rank 3 (host, device) in PHASE", for an error of this rank alone.
std::string place_of_error(comm::MpiSession const& session) {
    auto const& world = session.world();
    auto const [phase, step] = session.heartbeats()->failed_at();
    auto where = concat(name_of(phase), step > 0 ? concat(" at step ", step) : std::string());
    try {
        throw;
    } catch (RankError const& error) {
        where = error.where();
    } catch (...) {
        // Then it is where the rank was.
    }
    return concat("rank ", world.rank(), " (", comm::host_name(), ", ", world.device(), ") in ",
                  where);
}

/// A mistake of a deck or a command line where there is one process: neither rank nor phase helps.
bool is_own_mistake(comm::MpiSession& session, Error const& error) {
    bool const of_user = error.code() == ExitCode::usage || error.code() == ExitCode::no_input;
    return of_user && session.world().size() == 1 &&
           session.heartbeats()->own().phase.load() == comm::Phase::start_up;
}

} // namespace

ExitCode run_collectively(int argc, char** argv,
                          std::function<ExitCode(CommandContext&)> const& command) {
    RootCause root_cause;
    std::optional<Watchdog> watchdog; // watches MPI's end, too
    std::optional<StartWatch> start(std::in_place, root_cause);
    std::optional<StartFailure> start_failure(std::in_place, root_cause);
    comm::MpiSession session(argc, argv);
    start_failure.reset();
    std::optional<Recorder::Join> joined;
    try {
        auto const recorder =
            std::make_shared<Recorder>(injected_clock_skew(session.world().rank()));
        joined.emplace(recorder, "main");
        watchdog.emplace(session.world(), session.heartbeats(), root_cause);
        watchdog->set_recorder(recorder);
    } catch (...) { // without memory or a thread for what would tell it
        auto const error = root_cause.seen(current_error());
        root_cause.tell(place_of_error(session), error);
        comm::abort_job(static_cast<int>(error.code()));
    }
    start.reset();
    CommandContext context{session, session.world(), root_cause, *watchdog};
    try {
        comm::agree(session.world(), "reading the environment", [] {
            require_start_limit();
            require_launcher_streams();
        });
        auto const code = command(context);
        comm::in_phase(session.world(), comm::Phase::end, [&] {
            std::cout << std::flush; // MPI may not end, see Watchdog::set_exit_code
            // MPI's end need not wait (under srun it does not), and a rank that has left would be
            // missed by one that still draws pictures.
            comm::barrier(session.world());
            watchdog->set_exit_code(code);
        });
        return code;
    } catch (AgreedError const& agreed) {
        auto const error = root_cause.seen(agreed);
        if (session.world().is_root() && watchdog->may_tell(comm::HeartbeatTable::Ending::agreed)) {
            root_cause.tell(is_own_mistake(session, error) ? "" : agreed.cause(), error);
        }
        watchdog->write_flight();
        std::cout << std::flush;
        watchdog->set_exit_code(error.code());
        return error.code();
    } catch (...) {
        auto const error = root_cause.seen(current_error());
        bool const waited = error.code() == ExitCode::rank_lost;
        if (waited) {
            watchdog->wait_for_verdict(); // that this rank waited in vain is not the root cause
        }
        bool const in_vain = waited && watchdog->ended_by_launcher();
        if (!in_vain && watchdog->may_tell(comm::HeartbeatTable::Ending::abort)) {
            auto const unheard = waited ? watchdog->unheard() : std::string();
            root_cause.tell(is_own_mistake(session, error) ? ""
                            : unheard.empty()              ? place_of_error(session)
                                                           : concat("perhaps a rank of ", unheard,
                                                                    ", which cannot be heard by UDP: ",
                                                                    place_of_error(session)),
                            error);
            watchdog->write_flights();
        } else {
            watchdog->wait_for_the_end();
        }
        comm::abort_job(static_cast<int>(error.code()));
    }
}

} // namespace lockstep::monitor
