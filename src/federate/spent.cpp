#include "federate/spent.hpp"

#include "federate/accountant.hpp"

namespace lockstep::federate {

Spent spent(Federation const& federation, std::int64_t more_rounds) {
    auto const& charter = federation.charter();
    Spent spent{.rounds = more_rounds};
    for (std::int64_t round = 1; round < federation.current_round(); ++round) {
        spent.rounds += federation.counts_in_epsilon(round) ? 1 : 0;
    }
    if (charter.is_private()) {
        auto const of = [&](double rate) {
            return epsilon_of({rate, charter.noise}, spent.rounds, charter.delta,
                              charter.accountant);
        };
        spent.published = of(charter.participation);
        spent.known = of(1);
    }
    return spent;
}

} // namespace lockstep::federate
