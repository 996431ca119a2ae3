#include "kept_states.hpp"

#include "base/memory.hpp"
#include "base/text.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/record_fields.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace lockstep::trials {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t message_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t share_of_memory = 4; ///< of what is free, one in so many bytes

/// Doubles keep their bits in CBOR, not in JSON.
std::string packed(Json const& json) {
    auto const bytes = Json::to_cbor(json);
    return {bytes.begin(), bytes.end()};
}

Json json_of(checkpoint::Record const& record) {
    Json json;
    checkpoint::each_field(record,
                           [&](char const* name, auto const& field) { json[name] = field; });
    return json;
}

checkpoint::Record record_of(Json const& json) {
    checkpoint::Record record;
    checkpoint::each_field(record,
                           [&](char const* name, auto& field) { json.at(name).get_to(field); });
    return record;
}

std::uint64_t bytes_of(checkpoint::Snapshot const& snapshot) {
    std::uint64_t bytes = 0;
    for (auto const& parts : snapshot.parts) {
        for (auto const& part : parts) {
            bytes += part.bytes.size();
        }
    }
    return bytes;
}

/// A part of an array that a rank keeps.
struct Place {
    int holder;
    std::uint64_t first; ///< byte of the array
    std::uint64_t bytes;
};

/// Copies what lies between two bytes of an array from a rank that has it.
struct Fetch {
    comm::RequestDesk& desk;
    StateOf which;

    void operator()(Place const& place, std::size_t array, std::uint64_t from,
                    std::span<std::byte> into) const {
        auto const reply = desk.ask(place.holder, Json{{"state_of", which.first},
                                                       {"step", which.second},
                                                       {"array", array},
                                                       {"first", from},
                                                       {"bytes", into.size()}}
                                                      .dump());
        if (reply.size() != into.size()) {
            throw Error(ExitCode::software,
                        {concat("the state of trial ", which.first + 1, " is missing"),
                         concat("rank ", place.holder, " no longer has it"),
                         "This is a bug; please report it"});
        }
        std::memcpy(into.data(), reply.data(), into.size());
    }
};

} // namespace

bool KeptStates::has_room(checkpoint::Snapshot const& snapshot, int ranks_of_host) const {
    return bytes_of(snapshot) <= memory_share(ranks_of_host) / share_of_memory;
}

void KeptStates::keep(StateOf which, checkpoint::Snapshot const& snapshot) {
    State state;
    auto places = Json::array();
    for (std::size_t array = 0; array < snapshot.arrays.size(); ++array) {
        auto const unit = h5::size_of(snapshot.arrays[array].type);
        auto& parts = state.parts.emplace_back();
        auto own = Json::array();
        for (auto const& part : snapshot.parts[array]) {
            parts.push_back({part.first * unit, {part.bytes.begin(), part.bytes.end()}});
            own.push_back({part.first * unit, part.bytes.size()});
        }
        places.push_back(std::move(own));
    }
    state.head = packed({{"record", json_of(snapshot.record)},
                         {"layout", checkpoint::layout_text(snapshot.arrays, snapshot.views)},
                         {"places", places}});
    std::scoped_lock const lock(mutex_);
    states_.insert_or_assign(which, std::move(state));
}

void KeptStates::retain(std::set<StateOf> const& needed) {
    std::scoped_lock const lock(mutex_);
    std::erase_if(states_, [&](auto const& each) { return !needed.contains(each.first); });
}

bool KeptStates::is_asked(std::string const& request) {
    return Json::parse(request).contains("state_of");
}

std::string KeptStates::answer(std::string const& request) const {
    auto const json = Json::parse(request);
    std::scoped_lock const lock(mutex_);
    auto const found = states_.find({json.at("state_of"), json.at("step")});
    if (found == states_.end()) {
        return "";
    }
    auto const& state = found->second;
    if (!json.contains("array")) {
        return state.head;
    }
    auto const first = json.at("first").get<std::uint64_t>();
    auto const bytes = json.at("bytes").get<std::uint64_t>();
    for (auto const& part : state.parts.at(json.at("array").get<std::size_t>())) {
        if (part.first <= first && first + bytes <= part.first + part.bytes.size()) {
            auto const* const from =
                reinterpret_cast<char const*>(part.bytes.data() + (first - part.first));
            return {from, bytes};
        }
    }
    return "";
}

std::shared_ptr<checkpoint::Reader const> fetch_state(comm::RequestDesk& desk, StateOf which,
                                                      std::vector<int> const& holders) {
    checkpoint::Record record;
    std::string layout;
    std::vector<std::vector<Place>> places; // of each array
    for (int const holder : holders) {
        auto const head =
            desk.ask(holder, Json{{"state_of", which.first}, {"step", which.second}}.dump());
        if (head.empty()) {
            return nullptr;
        }
        auto const json = Json::from_cbor(head);
        auto const& own = json.at("places");
        if (holder == holders.front()) {
            record = record_of(json.at("record"));
            layout = json.at("layout");
            places.resize(own.size());
        }
        for (std::size_t array = 0; array < places.size(); ++array) {
            for (auto const& each : own.at(array)) {
                places[array].push_back({holder, each.at(0), each.at(1)});
            }
        }
    }
    std::vector<std::string> names;
    for (int const holder : holders) {
        names.push_back(std::to_string(holder));
    }
    auto const name = concat("trial ", which.first + 1, " at step ", which.second,
                             " in the memory of rank ", joined(names, ", "));
    auto const read = [fetch = Fetch{desk, which}, places](std::size_t array, std::uint64_t first,
                                                           std::span<std::byte> into) {
        while (!into.empty()) {
            auto const place = std::ranges::find_if(places.at(array), [&](auto const& each) {
                return each.first <= first && first < each.first + each.bytes;
            });
            if (place == places[array].end()) {
                throw Error(ExitCode::software,
                            {"the state of a trial is incomplete", "no rank holds one of its parts",
                             "This is a bug; please report it"});
            }
            auto const bytes = std::min({static_cast<std::uint64_t>(into.size()), message_bytes,
                                         place->first + place->bytes - first});
            fetch(*place, array, first, into.first(bytes));
            into = into.subspan(bytes);
            first += bytes;
        }
    };
    return std::make_shared<checkpoint::Reader const>(name, std::move(record), layout, read);
}

} // namespace lockstep::trials
