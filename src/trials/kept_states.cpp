#include "kept_states.hpp"

#include "base/memory.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <cstring>

namespace lockstep::trials {

namespace {

using Json = nlohmann::json;
using checkpoint::PartsTable;

constexpr std::uint64_t share_of_memory = 4; ///< of what is free, one in so many bytes

} // namespace

bool KeptStates::has_room(checkpoint::Snapshot const& snapshot, int ranks_of_host) const {
    return PartsTable(snapshot, false).bytes() <= memory_share(ranks_of_host) / share_of_memory;
}

void KeptStates::keep(StateOf which, checkpoint::Snapshot const& snapshot) {
    PartsTable table(snapshot);
    std::vector<std::byte> block(table.bytes());
    table.copy(snapshot, block);
    std::scoped_lock const lock(mutex_);
    states_.insert_or_assign(which, State{std::move(table), std::move(block)});
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
    auto const& [table, block] = found->second;
    if (!json.contains("array")) {
        return table.text();
    }
    PartsTable::Range const range{json.at("array").get<std::size_t>(),
                                  json.at("first").get<std::uint64_t>(),
                                  json.at("bytes").get<std::uint64_t>()};
    auto const place = table.place_of(range);
    return place ? std::string(reinterpret_cast<char const*>(block.data() + *place), range.bytes)
                 : "";
}

std::shared_ptr<checkpoint::Reader const> fetch_state(comm::RequestDesk& desk, StateOf which,
                                                      std::vector<int> const& holders) {
    Json const state{{"state_of", which.first}, {"step", which.second}};
    std::vector<std::string> names;
    std::vector<std::string> heads;
    for (int const holder : holders) {
        names.push_back(std::to_string(holder));
        heads.push_back(desk.ask(holder, state.dump()));
        if (heads.back().empty()) {
            return nullptr;
        }
    }
    auto const name = concat("trial ", which.first + 1, " at step ", which.second,
                             " in the memory of rank ", joined(names, ", "));
    std::vector<PartsTable> tables;
    for (auto const& head : heads) {
        tables.emplace_back(head, name);
    }
    return checkpoint::reader_of_parts(
        name, std::move(tables),
        [&desk, state, which, holders](std::size_t holder, PartsTable::Range const& range,
                                       std::span<std::byte> into) {
            auto request = state;
            request.update(
                {{"array", range.array}, {"first", range.first}, {"bytes", range.bytes}});
            auto const reply = desk.ask(holders[holder], request.dump());
            if (reply.size() != into.size()) {
                throw Error(ExitCode::software,
                            {concat("the state of trial ", which.first + 1, " is missing"),
                             concat("rank ", holders[holder], " no longer has it"),
                             "This is a bug; please report it"});
            }
            std::memcpy(into.data(), reply.data(), into.size());
        });
}

} // namespace lockstep::trials
