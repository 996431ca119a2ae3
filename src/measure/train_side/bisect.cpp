#include "measure/train_side/bisect.hpp"

#include "base/escaped.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "run_setting.hpp"
#include "step_difference.hpp"

namespace lockstep::measure {

namespace {

using Hashes = std::map<std::int64_t, std::uint64_t>;

/// What the records of both runs say.
struct Narrowed {
    std::int64_t same = 0;   ///< the last step that both have recorded with the same weights
    std::int64_t other = -1; ///< the first with others; -1: there is none
    std::int64_t common = 0; ///< steps that both have recorded
};

Narrowed narrowed(Hashes const& a, Hashes const& b) {
    Narrowed result;
    for (auto const& [step, hash] : a) {
        auto const found = b.find(step);
        if (found == b.end()) {
            continue;
        }
        ++result.common;
        if (found->second != hash) {
            result.other = step;
            break;
        }
        result.same = step;
    }
    return result;
}

/// The first step after which two replays have other weights; 0: none.
std::int64_t first_other(SeenSteps const& a, SeenSteps const& b) {
    for (auto const& [step, hash] : a.hashes) {
        auto const found = b.hashes.find(step);
        if (found != b.hashes.end() && found->second != hash) {
            return step;
        }
    }
    return 0;
}

class Bisection {
  public:
    Bisection(comm::Communicator const& world, std::array<std::filesystem::path, 2> const& runs,
              DeckOf const& deck_of, SignalRequests const& signals)
        : world_(world), runs_(runs), deck_of_(deck_of), signals_(signals) {}

    ExitCode run();

  private:
    using Replays = std::array<SeenSteps, 2>;

    /// Collective  over the world; what rank 0 thinks counts
    std::int64_t agreed(std::int64_t of_root) const;
    Narrowed narrow() const;
    std::int64_t last_of_both() const;
    Replays replay(std::int64_t from, std::int64_t to);
    void look_at(std::int64_t step);
    void print(std::string const& line) const;
    void print_unreproduced(Replays const& replays) const;
    void print_settings(std::int64_t step) const;

    comm::Communicator const& world_;
    std::array<std::filesystem::path, 2> const& runs_;
    DeckOf const& deck_of_;
    SignalRequests const& signals_;
};

std::int64_t Bisection::agreed(std::int64_t of_root) const {
    comm::broadcast(world_, std::span(&of_root, 1));
    return of_root;
}

void Bisection::print(std::string const& line) const {
    if (world_.is_root()) {
        std::cout << escaped_line(line) << std::endl;
    }
}

Narrowed Bisection::narrow() const {
    Narrowed result;
    comm::agree(world_, "reading the records of both runs", [&] {
        if (world_.is_root()) {
            result = narrowed(recorded_hashes(runs_[0]), recorded_hashes(runs_[1]));
        }
    });
    return {agreed(result.same), agreed(result.other), agreed(result.common)};
}

std::int64_t Bisection::last_of_both() const {
    std::int64_t last = 0;
    comm::agree(world_, "reading the records of both runs", [&] {
        if (world_.is_root()) {
            last = std::min(last_step(runs_[0]), last_step(runs_[1]));
            if (last < 1) {
                throw Error(ExitCode::data,
                            {"the runs have no step in common", "one of them has recorded none",
                             "Name two runs that have trained"});
            }
        }
    });
    return agreed(last);
}

/// Both runs' steps from the same one on.
Bisection::Replays Bisection::replay(std::int64_t from, std::int64_t to) {
    Replays seen;
    for (std::size_t at = 0; at < runs_.size(); ++at) {
        auto const start = agreed_start(world_, runs_[at], from + 1);
        Replay again(world_, start, to, StepLook::For::nothing);
        again.run(deck_of_(start), signals_);
        seen[at] = again.seen();
    }
    return seen;
}

/// Prints what differs in a step of both.
void Bisection::look_at(std::int64_t step) {
    std::array<LookedAt, 2> looks;
    for (std::size_t at = 0; at < runs_.size(); ++at) {
        auto const start = agreed_start(world_, runs_[at], step);
        Replay again(world_, start, step, StepLook::For::dump);
        again.run(deck_of_(start), signals_);
        looks[at] = {again.seen(), again.packed()};
    }
    comm::agree(world_, "comparing both steps", [&] {
        if (world_.is_root()) {
            for (auto const& line : differences(looks[0], looks[1])) {
                print("  " + line);
            }
        }
    });
}

/// The machine did it, then: which run's record does not come out again.
void Bisection::print_unreproduced(Replays const& replays) const {
    print("done again here, both runs have the same weights after each of these steps");
    for (std::size_t at = 0; at < runs_.size(); ++at) {
        auto const other = replays[at].first_other;
        print(other == 0
                  ? concat("  ", runs_[at].string(), ": as it has recorded")
                  : concat("  ", runs_[at].string(), ": it has recorded other weights from step ",
                           other, " on, which its deck and its data do not give"));
    }
}

void Bisection::print_settings(std::int64_t step) const {
    comm::agree(world_, "comparing the settings of both runs", [&] {
        if (!world_.is_root()) {
            return;
        }
        auto const lines = setting_differences(runs_[0], runs_[1], step);
        print(lines.empty() ? "decks, versions, processors and threads of both runs are the same"
                            : "what else differs:");
        for (auto const& line : lines) {
            print("  " + line);
        }
    });
}

ExitCode Bisection::run() {
    for (auto const& run : runs_) {
        static_cast<void>(agreed_start(world_, run, 1)); // refuses what is no run
    }
    auto const found = narrow();
    if (found.common > 0 && found.other < 0) {
        print(concat("the weights are the same after each of ", amount_of(found.common, "step"),
                     " that both runs have recorded, up to step ", found.same));
        return ExitCode::ok;
    }
    auto const to = found.common > 0 ? found.other : last_of_both();
    print(found.same > 0 ? concat("recorded: the same weights up to step ", found.same,
                                  ", others after step ", to)
          : found.common > 0
              ? concat("recorded: other weights after step ", to,
                       ", the first that both have recorded")
              : concat("recorded: no hash of weights that both have (monitor.weight-hash); both "
                       "are done again up to step ",
                       to));
    auto const replays = replay(found.same, to);
    bool const begin_alike = replays[0].begun_at != replays[1].begun_at ||
                             replays[0].begun_with == replays[1].begun_with;
    if (!begin_alike) {
        print(concat("the weights differ before step ", replays[0].begun_at + 1,
                     " already: look at the keys of the model, run.seed, model.weights and "
                     "checkpoint.resume"));
    }
    auto const step = agreed(first_other(replays[0], replays[1]));
    if (step == 0) {
        print_unreproduced(replays);
        print_settings(to);
        return found.common > 0 ? ExitCode::different : ExitCode::ok;
    }
    print(concat("the weights first differ after step ", step, "; in this step:"));
    look_at(step);
    print_settings(step);
    return ExitCode::different;
}

} // namespace

ExitCode bisect(comm::Communicator const& world, std::array<std::filesystem::path, 2> const& runs,
                DeckOf const& deck_of, SignalRequests const& signals) {
    return Bisection(world, runs, deck_of, signals).run();
}

} // namespace lockstep::measure
