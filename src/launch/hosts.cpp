#include "hosts.hpp"

#include "base/child.hpp"
#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/letters.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

namespace lockstep::launch {

namespace {

void add(std::vector<Host>& hosts, std::string const& name, int ranks) {
    auto const found = std::find_if(hosts.begin(), hosts.end(),
                                    [&](Host const& host) { return host.name == name; });
    if (found == hosts.end()) {
        hosts.push_back({name, ranks});
    } else {
        found->ranks += ranks;
    }
}

constexpr int max_ranks = 1'000'000; ///< of all hosts, so that no sum overflows

/// A positive number of ranks.
std::optional<int> ranks_in(std::string const& text) {
    auto const ranks = number_of<int>(text);
    return ranks && *ranks >= 1 && *ranks <= max_ranks ? ranks : std::nullopt;
}

bool is_name(std::string const& text) {
    return !text.empty() && is_alphanumeric(text.front()) &&
           std::ranges::all_of(text, [](char each) {
               return is_alphanumeric(each) || each == '.' || each == '-' || each == '_' ||
                      each == '@';
           });
}

/// "NAME", "NAME slots=4" or "NAME slots = 4 max_slots=8"; nothing for anything else.
std::optional<Host> host_in(std::string line) {
    line.resize(std::min(line.find('#'), line.size()));
    for (auto at = line.find('='); at != std::string::npos; at = line.find('=', at + 1)) {
        while (at > 0 && std::isspace(static_cast<unsigned char>(line[at - 1])) != 0) {
            line.erase(--at, 1);
        }
        while (at + 1 < line.size() &&
               std::isspace(static_cast<unsigned char>(line[at + 1])) != 0) {
            line.erase(at + 1, 1);
        }
    }
    std::istringstream words(line);
    Host host{.name = "", .ranks = 1};
    words >> host.name;
    bool is_valid = is_name(host.name);
    std::map<std::string, int> said;
    for (std::string word; words >> word;) {
        auto const sign = std::min(word.find('='), word.size());
        auto key = word.substr(0, sign);
        std::ranges::replace(key, '-', '_');
        auto const ranks = ranks_in(word.substr(std::min(sign + 1, word.size())));
        is_valid = is_valid && ranks && (key == "slots" || key == "max_slots") &&
                   said.emplace(key, *ranks).second;
    }
    host.ranks = said.contains("slots") ? said["slots"] : 1;
    is_valid = is_valid && (!said.contains("max_slots") || host.ranks <= said["max_slots"]);
    return is_valid ? std::optional(host) : std::nullopt;
}

std::vector<Host> hosts_of_file(std::string const& path) {
    std::vector<Host> hosts;
    std::int64_t ranks = 0;
    for (auto const& line : split(read_text(path), '\n')) {
        if (auto const text = trimmed(line); text.empty() || text.front() == '#') {
            continue;
        }
        auto const host = host_in(line);
        ranks += host ? host->ranks : 0;
        if (!host || ranks > max_ranks) {
            throw Error(ExitCode::usage, {concat("\"", line, "\" in ", path),
                                          "this line does not name a host and its number of ranks",
                                          "Write one host per line: NAME slots=RANKS"});
        }
        add(hosts, host->name, host->ranks);
    }
    if (hosts.empty()) {
        throw Error(ExitCode::usage,
                    {path, "it names no host", "Write one host per line: NAME slots=RANKS"});
    }
    return hosts;
}

/// "4(x2),3" is 4, 4, 3.
std::vector<int> tasks_of_nodes(std::string const& text) {
    std::vector<int> tasks;
    for (auto const& part : split(text, ',')) {
        auto const times = part.find("(x");
        auto const count =
            times == std::string::npos
                ? std::optional(1)
                : ranks_in(part.ends_with(')') ? part.substr(times + 2, part.size() - times - 3)
                                               : "");
        auto const ranks = ranks_in(part.substr(0, times));
        if (!count || !ranks) {
            throw Error(ExitCode::usage, {concat("SLURM_TASKS_PER_NODE = ", text),
                                          "this is not a list of numbers of ranks, such as 4(x2),3",
                                          "Unset this variable, or give --hostfile FILE"});
        }
        tasks.insert(tasks.end(), static_cast<std::size_t>(*count), *ranks);
    }
    return tasks;
}

std::vector<Host> hosts_of_slurm(std::string const& nodes, int devices_here) {
    auto const names = output_of({"scontrol", "show", "hostnames", nodes}, 10);
    if (!names) {
        throw Error(ExitCode::unavailable,
                    {concat("scontrol show hostnames ", nodes),
                     "this command failed or did not answer",
                     "Check that scontrol works in the job, or give --hostfile FILE"});
    }
    auto const tasks = tasks_of_nodes(environment_text("SLURM_TASKS_PER_NODE"));
    std::vector<Host> hosts;
    for (auto const& name : split(*names, '\n')) {
        if (!name.empty()) {
            add(hosts, name, hosts.size() < tasks.size() ? tasks[hosts.size()] : devices_here);
        }
    }
    return hosts;
}

} // namespace

std::vector<Host> hosts_of_job(std::string const& hostfile, int devices, int devices_here) {
    std::vector<Host> hosts;
    if (!hostfile.empty()) {
        hosts = hosts_of_file(hostfile);
    } else if (auto const nodes = environment_text("SLURM_JOB_NODELIST"); !nodes.empty()) {
        hosts = hosts_of_slurm(nodes, devices_here);
    } else if (auto const nodefile = environment_text("PBS_NODEFILE"); !nodefile.empty()) {
        hosts = hosts_of_file(nodefile);
    } else {
        hosts = {{"", devices_here}};
    }
    for (auto& host : hosts) {
        host.ranks = devices > 0 ? devices : host.ranks;
    }
    return hosts;
}

} // namespace lockstep::launch
