#include "length.hpp"

#include "base/text.hpp"
#include "train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "course.hpp"
#include "privacy_rules.hpp"
#include "progress.hpp"
#include "stored_deck.hpp"

namespace lockstep::train {

namespace {

struct Limit {
    std::string key; ///< "train.steps = 10"
    std::int64_t steps = 0;
};

std::vector<Limit> limits_of(config::Deck const& deck, LengthFacts const& facts) {
    std::vector<Limit> limits;
    if (deck.train.epochs > 0) {
        limits.push_back(
            {concat("train.epochs = ", deck.train.epochs),
             std::llround(deck.train.epochs * static_cast<double>(facts.steps_per_epoch))});
    }
    if (deck.train.steps > 0) {
        limits.push_back({concat("train.steps = ", deck.train.steps), deck.train.steps});
    }
    if (auto const steps = deck.privacy.is_on() ? facts.max_steps : 0; steps > 0) {
        limits.push_back({concat("privacy.epsilon = ", deck.privacy.epsilon), steps});
    }
    return limits;
}

} // namespace

std::string limits_text(config::Deck const& deck, LengthFacts const& facts) {
    auto const limits = limits_of(deck, facts);
    if (limits.size() < 2) {
        return "";
    }
    auto const first = std::ranges::min_element(limits, {}, &Limit::steps);
    std::vector<std::string> others;
    for (auto const& limit : limits) {
        if (limit.steps > first->steps) {
            others.push_back(concat(limit.key, " (", count_text(limit.steps), " steps)"));
        }
    }
    return others.empty() ? ""
                          : concat(first->key, " ends the run after ",
                                   amount_of(first->steps, "step"), ", before ", list_text(others));
}

std::string stretch_text(checkpoint::Record const& before, std::filesystem::path const& file,
                         config::Deck const& deck, LengthFacts const& facts) {
    if (deck.schedule.name != "cosine") { // the others do not depend on the length
        return "";
    }
    auto const old = stored_deck(before, file);
    auto const max_steps =
        old.privacy.is_on() ? private_steps(old, facts.samples) : facts.max_steps;
    auto const was = total_steps(old.train, facts.steps_per_epoch, max_steps);
    auto const now = total_steps(deck.train, facts.steps_per_epoch, facts.max_steps);
    if (was == now || old.schedule.name != deck.schedule.name) {
        return "";
    }
    auto const done = integer_of(before, "step");
    auto const rate = [&](config::Deck const& of, std::int64_t steps) {
        return significant(Schedule(of, facts.steps_per_epoch, steps).rate(done), 4);
    };
    return concat("warning: schedule.name = cosine now ends at step ", count_text(now),
                  " instead of ", count_text(was),
                  ", because the length of the run was changed: "
                  "the learning rate of step ",
                  count_text(done + 1), " is ", rate(deck, now), " instead of ", rate(old, was));
}

} // namespace lockstep::train
