#include "monitor/resource_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace lockstep::monitor {

namespace {

using Json = nlohmann::ordered_json;

Json rank_json(train::RankResources const& e) {
    Json json{{"rank", e.rank},
              {"user_s", e.user_s},
              {"system_s", e.system_s},
              {"memory_peak_bytes", e.memory_peak},
              {"disk_read_bytes", e.disk_read},
              {"disk_written_bytes", e.disk_written},
              {"exchanged_bytes", e.exchanged}};
    if (e.device_utilization) {
        json["device_utilization"] = *e.device_utilization;
    }
    if (e.device_joules) {
        json["device_joules"] = *e.device_joules;
    }
    return json;
}

} // namespace

Json resources_json(train::Resources const& e) {
    if (e.ranks == 0) {
        return nullptr;
    }
    Json json{{"seconds", e.seconds},
              {"core_hours", (e.user_s + e.system_s) / 3600},
              {"user_s", e.user_s},
              {"system_s", e.system_s},
              {"disk_read_bytes", e.disk_read},
              {"disk_written_bytes", e.disk_written},
              {"exchanged_bytes", e.exchanged},
              {"network_bytes", e.network},
              {"memory_peak_bytes", e.memory_peak.memory_peak},
              {"memory_peak_rank", e.memory_peak.rank},
              {"busiest_rank", e.busiest.rank},
              {"busiest_s", e.busiest.processor_s()},
              {"idlest_rank", e.idlest.rank},
              {"idlest_s", e.idlest.processor_s()}};
    if (e.processor_joules) {
        json["processor_joules"] = *e.processor_joules;
        json["hosts"] = e.hosts;
        json["hosts_with_energy"] = e.hosts_with_energy;
    }
    if (e.device_joules) {
        json["device_joules"] = *e.device_joules;
    }
    if (e.device_utilization) {
        json["device_utilization"] = *e.device_utilization;
    }
    for (auto const& rank : e.of_rank) {
        json["ranks"].push_back(rank_json(rank));
    }
    return json;
}

Json added_resources(Json const& before, Json const& after) {
    if (!before.is_object() || !after.is_object()) {
        return before.is_object() ? before : after;
    }
    Json sum = Json::object();
    auto const number = [](Json const& of, char const* key) {
        auto const found = of.find(key);
        return found != of.end() && found->is_number() ? found->get<double>() : 0.0;
    };
    for (char const* const key :
         {"seconds", "core_hours", "user_s", "system_s", "disk_read_bytes", "disk_written_bytes",
          "exchanged_bytes", "network_bytes", "processor_joules", "device_joules"}) {
        if (before.contains(key) || after.contains(key)) {
            sum[key] = number(before, key) + number(after, key);
        }
    }
    for (char const* const key : {"memory_peak_bytes"}) {
        sum[key] = std::max(number(before, key), number(after, key));
    }
    return sum;
}

} // namespace lockstep::monitor
