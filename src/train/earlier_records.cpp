#include "earlier_records.hpp"

#include "base/json_line.hpp"
#include "base/line_reader.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

/// Whether a record says that the run finished, at this step or later.
bool tells_of_the_end(std::string const& line, std::int64_t step) {
    JsonLine const record(line);
    return record.text("event") == "end" && record.text("reason") == "finished" &&
           record.whole("step", -1) >= step;
}

} // namespace

bool is_finished(Progress const& progress, bool all_learnt, bool has_test,
                 std::filesystem::path const& directory) {
    if (!all_learnt || progress.owes_validation) {
        return false;
    }
    bool finished = !has_test;
    LineReader lines(directory / "metrics.jsonl");
    for (std::string line; !finished && lines.next(line);) {
        finished = tells_of_the_end(line, progress.step);
    }
    return finished;
}

std::string lost_checkpoints(std::filesystem::path const& directory) {
    LineReader lines(directory / "metrics.jsonl");
    std::int64_t newest = 0; // the one of step 0 holds nothing that is not made again
    for (std::string line; lines.next(line);) {
        JsonLine const record(line);
        if (record.text("event") == "checkpoint") {
            newest = std::max(newest, record.whole("step", 0));
        }
    }
    return newest == 0 ? ""
                       : concat("warning: the records name a checkpoint of step ", newest, ", but ",
                                (directory / "checkpoints").string(),
                                " holds none, so training starts over");
}

} // namespace lockstep::train
