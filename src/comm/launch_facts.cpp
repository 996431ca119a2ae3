#include "comm/launch_facts.hpp"

#include "base/text.hpp"
#include "comm/collectives.hpp"
#include "comm/native.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace lockstep::comm {

namespace {

std::string packed(LaunchFacts const& facts) {
    std::vector<std::string> cores;
    for (auto const core : facts.cores) {
        cores.push_back(std::to_string(core));
    }
    return joined({facts.host, joined(cores, ","), std::to_string(facts.host_cores),
                   std::to_string(facts.granted_cores), std::to_string(facts.threads),
                   facts.processor, facts.gpu, facts.program, facts.libraries, facts.deck,
                   facts.data},
                  std::string(1, unit_separator));
}

LaunchFacts unpacked(std::string const& text) {
    auto const fields = split(text, unit_separator);
    LaunchFacts facts;
    facts.host = fields.at(0);
    for (auto const& core : split(fields.at(1), ',')) {
        facts.cores.push_back(std::stoi(core));
    }
    facts.host_cores = std::stoi(fields.at(2));
    facts.granted_cores = std::stod(fields.at(3));
    facts.threads = std::stoi(fields.at(4));
    facts.processor = fields.at(5);
    facts.gpu = fields.at(6);
    facts.program = fields.at(7);
    facts.libraries = fields.at(8);
    facts.deck = fields.at(9);
    facts.data = fields.at(10);
    return facts;
}

using Ranks = std::vector<std::size_t>;
using Key = std::function<std::string(LaunchFacts const&)>;

/// The ranks with each value of a key, in order of the value; those without one are left out.
std::map<std::string, Ranks> grouped(std::vector<LaunchFacts> const& facts, Key const& key) {
    std::map<std::string, Ranks> groups;
    for (std::size_t rank = 0; rank < facts.size(); ++rank) {
        if (auto const value = key(facts[rank]); !value.empty()) {
            groups[value].push_back(rank);
        }
    }
    return groups;
}

Finding green(std::string topic, std::string what) {
    return {Colour::green, std::move(topic), std::move(what), {}};
}

/// The ranks of the smaller groups, with their hosts: "rank 3 on node2 differs from the others".
std::string outsiders(std::vector<LaunchFacts> const& facts,
                      std::map<std::string, Ranks> const& groups) {
    auto const largest = std::max_element(groups.begin(), groups.end(), [](auto& a, auto& b) {
        return a.second.size() < b.second.size() ||
               (a.second.size() == b.second.size() && a.second.front() > b.second.front());
    });
    Ranks ranks;
    std::set<std::string> hosts;
    for (auto const& [value, members] : groups) {
        if (value != largest->first) {
            ranks.insert(ranks.end(), members.begin(), members.end());
            for (auto const rank : members) {
                hosts.insert(facts[rank].host);
            }
        }
    }
    std::sort(ranks.begin(), ranks.end());
    return concat(ranks_text(ranks), " on ", joined({hosts.begin(), hosts.end()}, ", "),
                  ranks.size() == 1 ? " differs" : " differ", " from the others");
}

struct Sameness {
    char const* topic;
    char const* same;
    char const* unlike;
    Colour colour;
    char const* remedy;
    std::string LaunchFacts::*fact;
};

void judge_sameness(std::vector<LaunchFacts> const& facts, Sameness const& what,
                    std::vector<Finding>& findings) {
    auto const groups = grouped(facts, [&](auto const& each) { return each.*what.fact; });
    if (groups.size() == 1 && !groups.contains("missing")) {
        findings.push_back(green(what.topic, what.same));
    } else if (groups.contains("missing")) {
        findings.push_back({Colour::red, what.topic,
                            concat(ranks_text(groups.at("missing")), " of ", facts.size(),
                                   " cannot read the ", what.topic),
                            what.remedy});
    } else if (!groups.empty()) {
        findings.push_back({what.colour, what.topic,
                            concat(what.unlike, ": ", outsiders(facts, groups)), what.remedy});
    }
}

void judge_gpus(std::vector<LaunchFacts> const& facts, std::vector<Finding>& findings) {
    auto const groups = grouped(facts, [](auto const& each) {
        return each.gpu.empty() ? each.gpu : concat(each.host, " ", each.gpu);
    });
    bool shared = false;
    for (auto const& [gpu, ranks] : groups) {
        if (ranks.size() > 1) {
            shared = true;
            findings.push_back(
                {Colour::red, "devices", concat(ranks_text(ranks), " share one GPU, ", gpu),
                 "Start one rank per GPU that the job has on a host, and give the job step all of "
                 "these GPUs (srun --gpus-per-node, not --gpus-per-task)"});
        }
    }
    if (!shared && !groups.empty()) {
        findings.push_back(green("devices", "each rank has its own GPU"));
    }
}

/// Ranks of one host that have fewer cores than there are of them, or the same single one.
void judge_cores_of(std::string const& host, Ranks const& ranks,
                    std::vector<LaunchFacts> const& facts, std::vector<Finding>& findings) {
    std::set<int> together;
    double threads = 0;
    for (auto const rank : ranks) {
        together.insert(facts[rank].cores.begin(), facts[rank].cores.end());
        threads += facts[rank].threads;
    }
    auto const& first = facts[ranks.front()];
    auto const cores = static_cast<double>(together.size());
    auto const count = static_cast<double>(ranks.size());
    if (cores < count && static_cast<int>(together.size()) < first.host_cores) {
        findings.push_back({Colour::red, "cores",
                            concat(ranks_text(ranks), " on ", host, " are bound to ",
                                   together.size(), " of its ", first.host_cores, " cores"),
                            "Bind each rank to its own cores: mpirun --bind-to core, or srun "
                            "--cpus-per-task"});
    } else if (cores < threads) {
        findings.push_back(
            {Colour::yellow, "cores",
             concat(amount_of(count, "rank"), " with ", threads,
                    count == 1 ? " threads uses " : " threads share ", amount_of(cores, "core"),
                    " of ", host),
             count == 1 ? "Lower run.threads" : "Start fewer ranks there, or lower run.threads"});
    } else if (first.granted_cores < threads) {
        findings.push_back(
            {Colour::yellow, "cores",
             concat(amount_of(threads, "thread"), " on ", host, threads == 1 ? " gets" : " get",
                    " the processor time of only ", fixed(first.granted_cores, 1), " cores"),
             "Ask the scheduler or the container for more cores"});
    }
    std::map<int, Ranks> alone;
    for (auto const rank : ranks) {
        if (facts[rank].cores.size() == 1) {
            alone[facts[rank].cores.front()].push_back(rank);
        }
    }
    for (auto const& [core, bound] : alone) {
        if (bound.size() > 1 && cores >= count) {
            findings.push_back(
                {Colour::red, "cores",
                 concat(ranks_text(bound), " on ", host, " are bound to core ", core),
                 "Bind each rank to its own core: mpirun --bind-to core"});
        }
    }
}

void judge_cores(std::vector<LaunchFacts> const& facts, std::vector<Finding>& findings) {
    auto const before = findings.size();
    for (auto const& [host, ranks] : grouped(facts, [](auto const& each) { return each.host; })) {
        judge_cores_of(host, ranks, facts, findings);
    }
    if (findings.size() == before) {
        findings.push_back(green("cores", "each rank has its own cores"));
    }
}

} // namespace

std::string library_text() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
    auto const all = std::string(text.data(), static_cast<std::size_t>(length));
    return std::string(trimmed(all.substr(0, all.find_first_of(",\n"))));
}

std::vector<LaunchFacts> gather_facts(Communicator const& comm, LaunchFacts const& own) {
    std::vector<LaunchFacts> all;
    for (auto const& text : all_gather_text(comm, packed(own))) {
        all.push_back(unpacked(text));
    }
    return all;
}

std::vector<Finding> judge_launch(std::vector<LaunchFacts> const& facts) {
    std::vector<Finding> findings;
    Sameness const program{"program",
                           "all ranks run the same program",
                           "the ranks run different programs",
                           Colour::red,
                           "Install one build on all hosts, or on a file system that they share",
                           &LaunchFacts::program};
    Sameness const libraries{
        "libraries", "all ranks have the same libraries",  "the ranks have different libraries",
        Colour::red, "Load the same modules on all hosts", &LaunchFacts::libraries};
    Sameness const deck{"deck",
                        "all hosts have the same deck",
                        "the deck is not the same on all hosts, so rank 0's deck is used",
                        Colour::red,
                        "Keep the deck on a file system that all hosts share",
                        &LaunchFacts::deck};
    Sameness const data{"data",
                        "all hosts have the same data",
                        "the hosts have different data",
                        Colour::red,
                        "Check the paths data.train, data.validation and data.test (`lockstep data "
                        "import` makes the files), and that all hosts see the same files",
                        &LaunchFacts::data};
    Sameness const processor{"processor",
                             "all ranks run on the same kind of processor",
                             "the hosts have different kinds of processors, so the results are not "
                             "bitwise identical to those on another number of ranks",
                             Colour::yellow,
                             "Ask for hosts of one kind (sbatch --constraint)",
                             &LaunchFacts::processor};
    for (auto const& what : {program, libraries, deck, data, processor}) {
        judge_sameness(facts, what, findings);
    }
    judge_gpus(facts, findings);
    judge_cores(facts, findings);
    return findings;
}

} // namespace lockstep::comm
