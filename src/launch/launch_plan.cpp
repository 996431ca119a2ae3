#include "launch_plan.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace lockstep::launch {

int ranks_on(LaunchPlan const& plan, std::vector<Host> const& hosts) {
    std::int64_t ranks = 0;
    for (auto const& host : hosts) {
        ranks += host.ranks;
    }
    return static_cast<int>(plan.max_ranks > 0 ? std::min(ranks, plan.max_ranks) : ranks);
}

std::vector<std::string> launch_words(LaunchPlan const& plan, std::vector<Host> const& hosts) {
    auto const ranks = ranks_on(plan, hosts);
    std::vector<std::string> slots;
    std::vector<std::string> names;
    for (auto const& host : hosts) {
        slots.push_back(concat(host.name, ":", host.ranks));
        names.push_back(host.name);
    }
    std::vector<std::string> words;
    bool const here_alone = hosts.size() == 1 && hosts[0].name.empty();
    if (plan.launcher == "srun") {
        words = {"srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n", std::to_string(ranks)};
        if (!here_alone) {
            words.insert(words.end(),
                         {"-N", std::to_string(hosts.size()), "-w", joined(names, ",")});
        }
    } else if (plan.launcher == "mpirun") {
        // A host that is cut off is noticed in about ten seconds, not in eight minutes.
        words = {"mpirun",
                 "-n",
                 std::to_string(ranks),
                 "--mca",
                 "oob_tcp_keepalive_time",
                 "5",
                 "--mca",
                 "oob_tcp_keepalive_intvl",
                 "2",
                 "--mca",
                 "oob_tcp_keepalive_probes",
                 "3"};
        if (!here_alone) {
            words.insert(words.end(), {"--host", joined(slots, ",")});
        }
        if (plan.oversubscribe) {
            words.insert(words.end(), {"--oversubscribe", "--bind-to", "none"});
        }
    }
    words.push_back(plan.program);
    words.insert(words.end(), plan.train.begin(), plan.train.end());
    return words;
}

} // namespace lockstep::launch
