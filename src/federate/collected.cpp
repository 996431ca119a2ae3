#include "federate/collected.hpp"

#include "base/text.hpp"
#include "federate/roster.hpp"

namespace lockstep::federate {

Collected collect(Federation const& federation, std::int64_t round, std::string const& phase,
                  std::vector<std::string> const& sites, Check const& check) {
    Collected collected;
    auto const removed = federation.removed();
    for (auto const& site : sites) {
        // Of a site whose update counts, what it sends to unmask the sum is of use even then.
        bool const out = contains(removed, site);
        auto& missing = out ? collected.removed : collected.awaited;
        if ((out && phase != phase::unmask) ||
            !federation.has(federation.binding(round, phase, site))) {
            missing.push_back(site);
            continue;
        }
        try {
            auto message = federation.read_of_site(round, phase, site);
            if (auto const fault = check(site, message); !fault.empty()) {
                throw Error(ExitCode::data,
                            {concat("the message from ", site, " was refused"), fault,
                             "Add --close to continue the round without that site"});
            }
            collected.messages.emplace(site, std::move(message));
        } catch (Error const& error) {
            if (error.code() != ExitCode::data) {
                throw;
            }
            missing.push_back(site);
            collected.refused.emplace_back(error.what());
        }
    }
    return collected;
}

Error too_few(Federation const& federation, std::int64_t round, std::string const& phase,
              Collected const& collected, std::int64_t min) {
    auto const awaited = std::ssize(collected.awaited);
    bool const some_removed = !collected.removed.empty();
    bool const hopeless = collected.is_hopeless(min);
    // No site that the round did not begin with can join it.
    auto const more = awaited == 0 ? std::string(", and no more can come")
                                   : concat(", and at most ", awaited, " more can come");
    auto const abandon = concat("(lockstep federate round ", federation.directory().string(),
                                " --coordinator --key FILE --abandon)");
    return {ExitCode::no_input,
            {concat("round ", round, " cannot continue"),
             concat("it needs ", phase, " messages from at least ", amount_of(min, "site"),
                    ", but has ", collected.come(), hopeless ? more : "",
                    hopeless && some_removed ? ", because sites were removed" : ""),
             !hopeless      ? concat("Wait for more sites, or abandon the round ", abandon)
             : some_removed ? concat("Abandon the round ", abandon,
                                     ", or accept a removed site again by its fingerprint "
                                     "(--accept)")
                            : concat("Abandon the round ", abandon)}};
}

} // namespace lockstep::federate
