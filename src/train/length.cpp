#include "length.hpp"

#include "base/text.hpp"
#include "batches/privacy_rules.hpp"
#include "config/steps.hpp"
#include "model_files/stored_deck.hpp"
#include "optimizer/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "course.hpp"
#include "progress.hpp"

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

/// Keys of a validation that does not happen.
std::string of_no_validation(config::Deck const& deck) {
    std::vector<std::string> keys;
    if (deck.train.validate_every > 0) {
        keys.push_back(concat("train.validate-every = ", deck.train.validate_every));
    }
    for (auto const& [key, metric] : {std::pair("checkpoint.best", deck.checkpoint.best),
                                      std::pair("task.metric", deck.task.metric)}) {
        if (!metric.empty()) {
            keys.push_back(concat(key, " = ", metric));
        }
    }
    return keys.empty() ? ""
                        : concat(list_text(keys), keys.size() > 1 ? " have" : " has",
                                 " no effect, because the run has no validation set");
}

/// What becomes of a schedule that is longer than the run.
std::string schedule_text(config::Deck const& deck, std::int64_t steps_per_epoch,
                          std::int64_t steps) {
    Schedule const schedule(deck, steps_per_epoch, steps);
    auto const ends = concat("because the run ends after ", amount_of(steps, "step"));
    if (schedule.warmup() >= steps) {
        return concat("the learning rate never reaches its peak, ", ends, " and its warm-up takes ",
                      count_text(schedule.warmup()), " (schedule.warmup-",
                      schedule.warmup() > deck.schedule.warmup_steps ? "epochs" : "steps", ")");
    }
    auto const& name = deck.schedule.name;
    auto const first = schedule.first_event();
    if (first < steps) {
        return "";
    }
    bool const restarts = name == "cosine-restarts";
    return concat("schedule.name = ", name, " never ",
                  restarts ? "restarts" : "reduces the learning rate", ", ", ends,
                  " and the first ", restarts ? "restart" : "reduction", " comes after ",
                  count_text(first), " (",
                  restarts         ? "schedule.cycle-epochs"
                  : name == "step" ? "schedule.step-epochs"
                                   : "schedule.milestones",
                  ")");
}

/// Validations between the warm-up and the end.
std::int64_t counted_validations(config::Deck const& deck, LengthFacts const& facts,
                                 std::int64_t steps) {
    auto const every =
        deck.train.validate_every > 0 ? deck.train.validate_every : facts.steps_per_epoch;
    auto const warmup = Schedule(deck, facts.steps_per_epoch, steps).warmup();
    return std::max<std::int64_t>((steps - 1) / every - warmup / every, 0);
}

/// What a number of validations without improvement cannot do in a run that has too few of them.
std::string patience_text(config::Deck const& deck, LengthFacts const& facts, std::int64_t steps) {
    auto const warmup = Schedule(deck, facts.steps_per_epoch, steps).warmup();
    auto const counted = counted_validations(deck, facts, steps);
    auto const tell = [&](std::int64_t patience, std::string const& key, char const* effect) {
        return concat(key, " = ", patience, " never ", effect, ", because the run has ",
                      counted == 0 ? "no validation" : amount_of(counted, "validation"),
                      warmup > 0 ? " between the warm-up and its end" : " before its end");
    };
    if (deck.train.patience > 0 && !can_end_early(deck, facts)) {
        return tell(deck.train.patience, "train.patience", "ends the run early");
    }
    return deck.schedule.name == "plateau" && deck.schedule.patience + 1 >= counted
               ? tell(deck.schedule.patience, "schedule.patience", "reduces the learning rate")
               : std::string();
}

} // namespace

bool can_end_early(config::Deck const& deck, LengthFacts const& facts) {
    auto const steps = total_steps(deck.train, facts.steps_per_epoch, facts.max_steps);
    auto const counted = counted_validations(deck, facts, steps);
    return deck.train.patience > 0 &&
           deck.train.patience < std::max<std::int64_t>(counted, 1); // the first is the best so far
}

std::vector<std::string> idle_texts(config::Deck const& deck, LengthFacts const& facts) {
    auto const steps = total_steps(deck.train, facts.steps_per_epoch, facts.max_steps);
    auto const ends = concat("the run ends after ", amount_of(steps, "step"));
    std::vector<std::string> texts;
    if (!facts.validates) {
        texts.push_back(of_no_validation(deck));
    } else if (deck.train.validate_every > steps) {
        texts.push_back(concat("train.validate-every = ", deck.train.validate_every, ", but ", ends,
                               ", so the only validation is at its end"));
    }
    if (auto const range = config::steps_of(deck.profile.steps);
        range && range->last > steps && !deck.profile.steps.empty()) {
        texts.push_back(concat("profile.steps = ", deck.profile.steps, " records ",
                               range->first > steps ? "no timeline" : "fewer steps", ", because ",
                               ends));
    }
    if (auto const after = deck.optimizer.thaw_epoch * facts.steps_per_epoch;
        deck.optimizer.freeze != "none" && after >= steps && after > 0) {
        texts.push_back(concat("optimizer.thaw-epoch = ", deck.optimizer.thaw_epoch,
                               " has no effect, because ", ends));
    }
    texts.push_back(schedule_text(deck, facts.steps_per_epoch, steps));
    texts.push_back(patience_text(deck, facts, steps));
    std::erase(texts, "");
    return texts;
}

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
    if (!depends_on_length(deck.schedule)) {
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
    return concat("warning: schedule.name = ", deck.schedule.name, " now ends at step ",
                  count_text(now), " instead of ", count_text(was),
                  ", because the length of the run was changed: "
                  "the learning rate of step ",
                  count_text(done + 1), " is ", rate(deck, now), " instead of ", rate(old, was));
}

} // namespace lockstep::train
