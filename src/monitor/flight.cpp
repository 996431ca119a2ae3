#include "flight.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/own_directory.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "trace/trace_text.hpp"

namespace lockstep::monitor {

void record_flight(Recorder const& recorder, Flight const& flight) noexcept {
    try {
        auto const name = trace::rank_name(flight.rank);
        trace::TraceText text({.rank = flight.rank, .host = flight.host});
        for (auto const& thread : recorder.read_all()) {
            text.add(thread);
        }
        auto const directory = flight.directory / "flight";
        make_own_directory(directory);
        auto const file = directory / concat(name, ".json");
        PartialFile partial(partial_path(file));
        File::create_new(partial.path())
            .append_text(text.whole({{"written", utc_now()},
                                     {"rank", std::to_string(flight.rank)},
                                     {"host", flight.host},
                                     {"step", std::to_string(flight.step)}}));
        partial.rename_unsynced(file);
    } catch (...) {
        // A warning would stand behind the root cause, which is the last word.
    }
}

} // namespace lockstep::monitor
