#include "program/metadata.hpp"

#include "base/escaped.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "schema.hpp"

namespace lockstep::program {

namespace {

constexpr char const* record = "extra/lockstep.json";
constexpr int format = 1;

std::size_t place_of(Archive const& archive, std::vector<std::string> const& sums,
                     std::string const& name) {
    auto const found = std::find(sums.begin(), sums.end(), name);
    if (found == sums.end()) {
        archive.damaged(concat("its loss returns no sum named ", name));
    }
    return static_cast<std::size_t>(found - sums.begin());
}

} // namespace

std::optional<LossMetadata> read_loss_metadata(Archive const& archive) {
    if (!archive.has(record)) {
        return std::nullopt;
    }
    try {
        auto const json = archive.json(record);
        if (json.at("format") != format) {
            throw Error(ExitCode::data,
                        {concat(archive.path().string(), " cannot be read"),
                         concat("its lockstep.json has format ", json.at("format").dump(),
                                ", but this version of Lockstep reads only format ", format),
                         "Save the model with the lockstep_export.py of this version"});
        }
        if (!json.contains("sums")) {
            return std::nullopt;
        }
        LossMetadata result{json.at("sums").get<std::vector<std::string>>()};
        auto const place = [&](std::string const& name) {
            return place_of(archive, result.sums, name);
        };
        result.loss = place("loss");
        result.weight = place(json.at("weight").get<std::string>());
        for (auto const& [name, ratio] : json.at("metrics").items()) {
            if (name.empty() || name == "loss" || escaped_line(name) != name) {
                archive.damaged("a metric has no name, is named loss, or has control characters in "
                                "its name");
            }
            auto const better = ratio.size() > 2 ? ratio.at(2).get<std::string>() : "max";
            if (better != "max" && better != "min") {
                archive.damaged(concat("the metric ", name, " has the direction ", better,
                                       ", but must have max or min"));
            }
            result.metrics.push_back({name, place(ratio.at(0).get<std::string>()),
                                      place(ratio.at(1).get<std::string>()), better == "max"});
        }
        return result;
    } catch (Json::exception const& error) {
        archive.damaged(error.what());
    }
}

} // namespace lockstep::program
