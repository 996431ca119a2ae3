#include "lockstep/monitor/collective_command.hpp"

#include "lockstep/base/file.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/comm/agree.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

namespace lockstep::monitor {

namespace {

void tell_first_cause(CommandContext const& context, std::string const& cause, Error const& error) {
    auto const line = concat("lockstep: first cause: ", cause, ": ", error.what(), "\n");
    std::cerr << line << std::flush;
    auto const& directory = context.run_directory;
    if (directory.empty() || !std::filesystem::exists(directory / "log.txt")) {
        return;
    }
    try {
        File::append(directory / "log.txt").append_text(line);
        nlohmann::ordered_json const record{
            {"event", "failure"},      {"cause", cause},
            {"message", error.what()}, {"exit_code", static_cast<int>(error.code())},
            {"time", utc_now()},       {"elapsed_s", context.since_start.seconds()}};
        File::append(directory / "metrics.jsonl").append_text(record.dump() + "\n");
    } catch (Error const&) {
        // It was said on standard error; a log that cannot be written is not the first cause.
    }
}

} // namespace

ExitCode run_collectively(int argc, char** argv,
                          std::function<ExitCode(CommandContext&)> const& command) {
    comm::MpiSession session(argc, argv);
    CommandContext context{session, session.world(), {}, {}};
    try {
        return command(context);
    } catch (AgreedError const& error) {
        if (session.world().is_root()) {
            tell_first_cause(context, error.cause(), error);
        }
        return error.code();
    } catch (...) {
        auto const error = current_error();
        std::string where = "start-up";
        try {
            throw;
        } catch (RankError const& rank_error) {
            where = rank_error.where();
        } catch (...) {
            // Nothing is known of the place.
        }
        tell_first_cause(context,
                         concat("rank ", session.world().rank(), " (", comm::host_name(), ", ",
                                session.world().device(), ") in ", where),
                         error);
        comm::abort_job(static_cast<int>(error.code()));
    }
}

} // namespace lockstep::monitor
