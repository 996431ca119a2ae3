#include "checkpoint/memory_state.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/hosts.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/session.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace lockstep::checkpoint {

namespace {

using Json = nlohmann::json;

constexpr char const* state_name = "the copies in memory"; ///< in messages

/// One attempt's copies of one step.
struct Set {
    std::int64_t step = 0;
    std::uint64_t attempt = 0;
    int ranks = 0;

    friend auto operator<=>(Set const&, Set const&) = default;
};

/// The hosts that have each rank's parts, as these hosts' first ranks.
using Holders = std::map<int, std::vector<int>>;

Set set_of(CopyHeader const& header) {
    return {header.step, header.attempt, header.ranks};
}

bool is_complete(Set const& set, Holders const& holders) {
    return static_cast<int>(holders.size()) == set.ranks &&
           std::ranges::none_of(holders, [](auto const& each) { return each.second.empty(); });
}

/// What all hosts have; the same on all ranks.
std::map<Set, Holders> gather_sets(comm::Communicator const& world,
                                   std::vector<StoredCopy> const& own) {
    auto list = Json::array();
    for (auto const& [header, path] : own) {
        list.push_back({header.step, header.attempt, header.ranks, header.rank});
    }
    auto const texts = comm::all_gather_text(world, list.dump());
    std::map<Set, Holders> sets;
    for (std::size_t leader = 0; leader < texts.size(); ++leader) {
        for (auto const& each : Json::parse(texts[leader])) {
            Set const set{each.at(0).get<std::int64_t>(), each.at(1).get<std::uint64_t>(),
                          each.at(2).get<int>()};
            sets[set][each.at(3).get<int>()].push_back(static_cast<int>(leader));
        }
    }
    return sets;
}

/// Parts as the ranks of this set have them, of this host; those that do not verify are left out.
std::map<int, std::pair<MappedCopy, PartsTable>> mapped(std::vector<StoredCopy> const& copies,
                                                        Set const& set, bool verify) {
    std::map<int, std::pair<MappedCopy, PartsTable>> parts;
    for (auto const& copy : copies) {
        if (set_of(copy.header) != set) {
            continue;
        }
        try {
            MappedCopy map(copy, verify);
            PartsTable table(map.table(), copy.path.string());
            if (table.bytes() == map.block().size()) {
                parts.emplace(copy.header.rank, std::pair(std::move(map), std::move(table)));
            }
        } catch (Error const&) { // as if it were not there
            continue;
        }
    }
    return parts;
}

/// Forgets the hosts whose copies do not verify.
void retain_good(comm::Communicator const& world, bool is_leader,
                 std::map<int, std::pair<MappedCopy, PartsTable>> const& good, Holders& holders) {
    auto list = Json::array();
    if (is_leader) {
        for (auto const& each : good) {
            list.push_back(each.first);
        }
    }
    auto const texts = comm::all_gather_text(world, list.dump());
    std::map<int, std::set<int>> of_leader;
    for (std::size_t leader = 0; leader < texts.size(); ++leader) {
        of_leader[static_cast<int>(leader)] = Json::parse(texts[leader]).get<std::set<int>>();
    }
    for (auto& [rank, leaders] : holders) {
        std::erase_if(leaders,
                      [&, of = rank](int leader) { return !of_leader[leader].contains(of); });
    }
}

/// The tables of all ranks' parts, each from the first host that has them; by rank.
std::vector<PartsTable> gather_tables(comm::Communicator const& world,
                                      std::map<int, std::pair<MappedCopy, PartsTable>> const& own,
                                      Holders const& holders, std::string const& name) {
    std::vector<PartsTable> tables;
    for (auto const& [rank, leaders] : holders) {
        std::string text;
        if (leaders.front() == world.rank()) {
            text = own.at(rank).second.text();
        }
        comm::broadcast_text(world, text, leaders.front());
        tables.emplace_back(text, name);
    }
    return tables;
}

std::vector<int> holder_of_each(Holders const& holders, int preferred) {
    std::vector<int> chosen;
    for (auto const& [rank, leaders] : holders) {
        auto const own = std::ranges::find(leaders, preferred);
        chosen.push_back(own == leaders.end() ? leaders.front() : *own);
    }
    return chosen;
}

} // namespace

std::shared_ptr<MemoryState> MemoryState::find(comm::Communicator const& world,
                                               Search const& search) {
    auto const host = search.layout.split(world);
    auto const leader = comm::leaders(world, host)[static_cast<std::size_t>(world.rank())];
    auto copies = list_copies(search.directory, search.run);
    std::erase_if(copies, [&](StoredCopy const& copy) {
        return copy.header.job != search.job || copy.header.step <= search.after;
    });
    auto sets = comm::all_ranks(world, copies.empty())
                    ? std::map<Set, Holders>()
                    : gather_sets(world, host.is_root() ? copies : std::vector<StoredCopy>());
    for (auto each = sets.rbegin(); each != sets.rend(); ++each) {
        auto const& set = each->first;
        auto& holders = each->second;
        if (!is_complete(set, holders)) {
            continue;
        }
        auto parts = mapped(copies, set, host.is_root());
        retain_good(world, host.is_root(), parts, holders);
        if (!is_complete(set, holders)) {
            continue;
        }
        std::erase_if(parts, [&](auto const& part) {
            return std::ranges::count(holders[part.first], leader) == 0;
        });
        std::shared_ptr<MemoryState> state(new MemoryState);
        state->step_ = set.step;
        state->mapped_ = std::move(parts);
        state->open(world, holder_of_each(holders, leader),
                    gather_tables(world, state->mapped_, holders, state_name));
        return state;
    }
    return nullptr;
}

/// `holders`: of each rank's parts, whom this rank asks for them.
void MemoryState::open(comm::Communicator const& world, std::vector<int> holders,
                       std::vector<PartsTable> tables) {
    bool const all_here = mapped_.size() == holders.size();
    if (!comm::all_ranks(world, all_here)) {
        desk_ = std::make_unique<comm::RequestDesk>(
            world, [this](int, std::string const& request) { return answer(request); });
    }
    auto const fetch = [this, holders = std::move(holders)](std::size_t rank,
                                                            PartsTable::Range const& range,
                                                            std::span<std::byte> into) {
        if (auto const here = mapped_.find(static_cast<int>(rank)); here != mapped_.end()) {
            auto const& [copy, table] = here->second;
            std::memcpy(into.data(), copy.block().data() + table.place_of(range).value(),
                        into.size());
            return;
        }
        auto const reply = desk_->ask(holders[rank], Json{{"rank", rank},
                                                          {"array", range.array},
                                                          {"first", range.first},
                                                          {"bytes", range.bytes}}
                                                         .dump());
        if (reply.size() != into.size()) {
            throw Error(ExitCode::data, {concat("cannot read ", state_name, " of step ", step_),
                                         concat("rank ", holders[rank], " no longer has its part"),
                                         "Start again, which resumes from a checkpoint"});
        }
        std::memcpy(into.data(), reply.data(), into.size());
    };
    reader_ = reader_of_parts(state_name, std::move(tables), fetch);
}

std::string MemoryState::answer(std::string const& request) const {
    auto const json = Json::parse(request);
    auto const found = mapped_.find(json.at("rank").get<int>());
    if (found == mapped_.end()) {
        return "";
    }
    auto const& [copy, table] = found->second;
    PartsTable::Range const range{json.at("array").get<std::size_t>(),
                                  json.at("first").get<std::uint64_t>(),
                                  json.at("bytes").get<std::uint64_t>()};
    auto const place = table.place_of(range);
    return place ? std::string(reinterpret_cast<char const*>(copy.block().data() + *place),
                               range.bytes)
                 : "";
}

void MemoryState::close() {
    if (desk_) {
        desk_->close();
        desk_.reset();
    }
    mapped_.clear();
}

} // namespace lockstep::checkpoint
