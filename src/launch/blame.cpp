#include "blame.hpp"

#include "base/host_facts.hpp"
#include "base/text.hpp"

#include <algorithm>

#include "road.hpp"

namespace lockstep::launch {

namespace {

constexpr int losses_at_most = 2;

/// "disk" of "disk: …".
std::string kind_of(std::string const& fault) {
    return fault.substr(0, fault.find(':'));
}

std::string evidence_against(HostAnswer const& answer, std::vector<HostAnswer> const& answers,
                             Suspicion const& suspicion) {
    bool const suspect = is_named(answer.host, suspicion.host);
    if (!answer.answers) { // where no other does, this host may be the one that is cut off
        bool const others = std::ranges::any_of(answers, [](HostAnswer const& other) {
            return other.answers && !is_here(other.host.name);
        });
        return suspect && others ? concat(suspicion.why, ", and it does not answer") : "";
    }
    if (suspect && suspicion.certain) {
        return suspicion.why;
    }
    auto const same = std::ranges::count_if(answers, [&](HostAnswer const& other) {
        return kind_of(other.fault) == kind_of(answer.fault);
    });
    bool const own = !answer.fault.empty() && same == 1; // else it lies with what hosts share
    if (own && answer.certain) {
        return answer.fault;
    }
    if (own && suspect) {
        return concat(suspicion.why, ", and its test says: ", answer.fault);
    }
    return suspect && suspicion.losses > losses_at_most
               ? concat(suspicion.why, ", the loss number ", suspicion.losses, " of this host")
               : "";
}

} // namespace

bool is_named(Host const& host, std::string const& name) {
    return !name.empty() && is_same_host(is_here(host.name) ? own_host() : host.name, name);
}

bool is_alone(std::vector<HostAnswer> const& answers) {
    return answers.size() > 2 && std::ranges::all_of(answers, [](HostAnswer const& answer) {
               return !answer.answers || is_here(answer.host.name);
           });
}

std::optional<LauncherVerdict> missed_host(std::vector<HostAnswer> const& answers,
                                           std::vector<Host> const& trained,
                                           std::string const& told, bool launcher_names) {
    auto const named = host_named_in(told);
    auto const answering = [&](auto const& is_it) {
        return std::ranges::any_of(
            answers, [&](HostAnswer const& each) { return each.answers && is_it(each.host); });
    };
    bool const own_word = told.find("has lost contact with all other") != std::string::npos &&
                          !is_here(named) &&
                          answering([&](Host const& host) { return is_named(host, named); });
    if (is_alone(answers) || !(own_word || (told.empty() && !launcher_names))) {
        return std::nullopt;
    }
    auto const lost = std::ranges::find_if(trained, [&](Host const& host) {
        return !answering([&](Host const& other) { return other.name == host.name; });
    });
    if (lost == trained.end()) {
        return std::nullopt;
    }
    return LauncherVerdict{concat("all ranks of ", lost->name),
                           lost->name,
                           true,
                           {"this host does not answer", "it is off or cut off from the network",
                            "Look at that host and at its network"}};
}

std::vector<RetiredHost> convicted(std::vector<HostAnswer> const& answers,
                                   Suspicion const& suspicion, std::int64_t min) {
    std::vector<RetiredHost> bad;
    auto left = std::ranges::count_if(answers, &HostAnswer::answers);
    for (auto const& answer : answers) {
        auto evidence = evidence_against(answer, answers, suspicion);
        if (evidence.empty() || (answer.answers && left <= min)) {
            continue;
        }
        left -= answer.answers ? 1 : 0;
        bad.push_back({answer.host.name.empty() ? own_host() : answer.host.name, evidence});
    }
    return bad;
}

int LossCount::add(std::string const& host, std::int64_t step) {
    auto& count = counts_[host];
    if (step > count.step) {
        ++count.losses;
        count.step = step;
    }
    return count.losses;
}

std::vector<Host> chosen_hosts(std::vector<HostAnswer> const& answers,
                               std::vector<Host> const& hosts,
                               std::vector<std::string> const& retired) {
    std::vector<Host> chosen;
    for (auto const& answer : answers) {
        bool const out = std::ranges::any_of(
            retired, [&](std::string const& name) { return is_named(answer.host, name); });
        if (answer.answers && !out && chosen.size() < hosts.size()) {
            chosen.push_back(answer.host);
        }
    }
    return chosen;
}

} // namespace lockstep::launch
