#include "lost_checkpoints.hpp"

#include "base/json_line.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>

namespace lockstep::train {

std::string lost_checkpoints(std::filesystem::path const& directory) {
    auto const metrics = directory / "metrics.jsonl";
    std::int64_t newest = 0; // the one of step 0 holds nothing that is not made again
    if (std::filesystem::is_regular_file(metrics)) {
        std::ifstream lines(metrics);
        for (std::string line; std::getline(lines, line);) {
            JsonLine const record(line);
            if (record.text("event") == "checkpoint") {
                newest = std::max(newest, record.whole("step", 0));
            }
        }
    }
    return newest == 0 ? ""
                       : concat("warning: the records name a checkpoint of step ", newest,
                                ", and none is in ", (directory / "checkpoints").string(),
                                ": training starts over");
}

} // namespace lockstep::train
