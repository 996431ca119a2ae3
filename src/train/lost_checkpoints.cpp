#include "lost_checkpoints.hpp"

#include "lockstep/base/text.hpp"

#include <nlohmann/json.hpp>

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
            auto const record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
            // A line that is none of ours says nothing.
            auto const event = record.find("event");
            auto const step = record.find("step");
            if (event != record.end() && *event == "checkpoint" && step != record.end() &&
                step->is_number_integer()) {
                newest = std::max(newest, step->get<std::int64_t>());
            }
        }
    }
    return newest == 0 ? ""
                       : concat("warning: the records tell of a checkpoint of step ", newest,
                                ", and none is in ", (directory / "checkpoints").string(),
                                ": training begins anew");
}

} // namespace lockstep::train
