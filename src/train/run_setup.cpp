#include "run_setup.hpp"

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/own_directory.hpp"
#include "base/own_file.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/step_name.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "lockstep/base/error.hpp"
#include "train/privacy_key.hpp"

#include <algorithm>
#include <functional>

#include "decide.hpp"
#include "progress.hpp"
#include "suspect_steps.hpp"

namespace lockstep::train {

namespace {

/// The run's own place in checkpoint.local, made and seen by all ranks. Its name holds an id that
/// goes with the run's checkpoints: what a run that was archived left on some node is not taken.
std::filesystem::path local_directory(comm::Communicator const& world, config::Deck const& deck,
                                      std::filesystem::path const& checkpoints,
                                      RunDirectory const* directory) {
    if (deck.checkpoint.local.empty()) {
        return {};
    }
    std::string place;
    std::string probe;
    comm::agree(world, "making the local directory", [&] {
        if (!world.is_root()) {
            return;
        }
        auto id = directory->absence() ? directory->continued() : checkpoints_id(checkpoints);
        std::replace(id.begin(), id.end(), ':', '-');
        auto const path = std::filesystem::path(deck.checkpoint.local) /
                          concat(checkpoints.parent_path().filename().string(), "-", id);
        make_private_directory(path);
        remove_partials(path);
        place = path.string();
        probe = concat(place, "/probe-", new_token());
        write_text_durably(probe, "");
    });
    comm::broadcast_text(world, place);
    comm::broadcast_text(world, probe);
    comm::agree(world, "looking for the local directory", [&] {
        if (!std::filesystem::exists(probe)) {
            throw Error(ExitCode::usage,
                        {concat("checkpoint.local = ", deck.checkpoint.local),
                         "this rank does not see a file that rank 0 has written there, but all "
                         "ranks must write each checkpoint into one file",
                         "Name a directory that all hosts share, such as a burst buffer, or leave "
                         "out checkpoint.local"});
        }
    });
    if (world.is_root()) {
        std::error_code ignored; // an empty file that stays behind is not a failure of the run
        std::filesystem::remove(probe, ignored);
    }
    return place;
}

/// Whether a run's best.h5 is the best model of the state that a checkpoint holds.
bool is_best_of(std::filesystem::path const& best, checkpoint::Record const& state) {
    try {
        auto const record = checkpoint::open_weights(checkpoint::VerifiedFile(best))->record();
        return integer_of(record, "step") == integer_of(state, "best_step") &&
               real_of(record, "best") == real_of(state, "best");
    } catch (Error const&) { // damaged, or of another kind
        return false;
    }
}

/// The step of a model file; nothing for one that is damaged, or of another kind.
std::optional<std::int64_t> step_of(std::filesystem::path const& best) {
    try {
        return integer_of(checkpoint::open_weights(checkpoint::VerifiedFile(best))->record(),
                          "step");
    } catch (Error const&) {
        return std::nullopt;
    }
}

/// Moves the checkpoints after a step aside, and best.h5 unless `keeps` says otherwise. Nothing is
/// deleted.
///
/// Returns  what was moved where, for people; empty: nothing
std::string move_aside(RunSetup const& run, std::filesystem::path const& checkpoints,
                       std::int64_t stay,
                       std::function<bool(std::filesystem::path const& best)> const& keeps) {
    auto const folder = concat("abandoned-", utc_for_names());
    checkpoint::Store const store(
        checkpoints, static_cast<int>(run.deck.checkpoint.keep),
        [&run] { run.directory->require_ours(); }, run.local);
    auto const moved = store.set_aside(stay, folder);
    if (moved == 0) {
        return "";
    }
    auto const best = run.directory->path() / "best.h5";
    bool const has_best = std::filesystem::exists(best) && !keeps(best);
    if (has_best) {
        make_own_directory(checkpoints / folder); // they may have been in checkpoint.local alone
        rename_durably(best, checkpoints / folder / "best.h5");
    }
    return concat("moved ", amount_of(moved, "later checkpoint"), has_best ? " and best.h5" : "",
                  " to ", (checkpoints / folder).string());
}

/// Where checkpoint.resume names a file, the run continues from it: a later start must not resume
/// from what the run had written beyond that point. Nothing is deleted.
void leave_behind(RunSetup& run, std::filesystem::path const& checkpoints) {
    auto const& file = run.found->file.path();
    auto const stay = run.foreign ? -1 : checkpoint::step_of_name(file.filename().string()).value();
    auto const moved = move_aside(run, checkpoints, stay, [&run](auto const& best) {
        return is_best_of(best, checkpoint::reader_of(*run.found)->record());
    });
    if (!moved.empty()) {
        run.aside = concat(moved, ", because this run continues from ", file.string());
    }
}

/// Where a host has computed wrongly, the run does not continue from what it may have spoilt: only
/// where all checkpoints are suspect, the oldest one stays. A file that the user names is the
/// user's choice.
void leave_suspects(comm::Communicator const& world, RunSetup& run,
                    std::filesystem::path const& checkpoints) {
    bool noted = false;
    comm::agree(world, "setting suspect checkpoints aside", [&] {
        auto const after = world.is_root() ? suspect_steps(checkpoints) : std::nullopt;
        if (!after) {
            return;
        }
        noted = true;
        if (run.deck.checkpoint.resume == "auto" || run.requeued) {
            auto const files = checkpoint::Store(checkpoints, 1, {}, run.local).list();
            auto const oldest = files.empty() ? *after : files.back().step;
            auto const stay = std::max(*after, oldest);
            auto const moved = move_aside(run, checkpoints, stay, [stay](auto const& best) {
                return step_of(best).value_or(stay + 1) <= stay;
            });
            run.aside =
                stay > *after
                    ? concat("warning: a host has computed wrongly after step ", *after,
                             ", and no checkpoint is that old: the run continues from step ", stay,
                             ", whose values may be wrong",
                             moved.empty() ? "" : concat(" (", moved, ")"))
                : moved.empty()
                    ? ""
                    : concat(moved, ", because a host has computed wrongly after step ", *after);
        }
        forget_suspect_steps(checkpoints);
    });
    noted = comm::all_reduce(world, noted ? 1 : 0, comm::Reduce::maximum) != 0;
    if (noted && run.copies.run != 0) {
        checkpoint::remove_copies(checkpoint::memory_directory, run.copies.run);
    }
}

/// Continues from copies in memory of this job that are newer than `after`; whether there are any.
bool find_in_memory(comm::Communicator const& world, RunSetup& run, std::int64_t after) {
    bool const automatic = run.deck.checkpoint.resume == "auto" || run.requeued;
    if (run.copies.run == 0 || !run.copies.follows || !automatic) {
        return false;
    }
    auto state = checkpoint::MemoryState::find(
        world, {.run = run.copies.run, .job = run.copies.job, .after = after});
    if (!state) {
        return false;
    }
    auto const& reader = state->reader();
    run.found =
        checkpoint::Found{.step = state->step(),
                          .file = checkpoint::VerifiedFile::in_memory(reader->path()),
                          .skipped = run.found ? run.found->skipped : std::vector<std::string>(),
                          .held = reader};
    run.in_memory = std::move(state);
    return true;
}

/// The step of what claims to be the newest checkpoint; -1: there is none, or it is on a disk that
/// cannot be read.
std::int64_t newest_listed(RunSetup const& run, std::filesystem::path const& checkpoints) {
    try {
        auto const files = checkpoint::Store(checkpoints, 1, {}, run.local).list();
        return files.empty() ? -1 : files.front().step;
    } catch (std::filesystem::filesystem_error const&) {
        if (!run.directory->absence()) {
            throw;
        }
        return -1;
    }
}

/// The checkpoints' identity of the run that a launch continues, where it may continue without its
/// directory; empty: it needs the directory.
std::string continued_run(RunOptions const& options) {
    bool const may = wants_copies(options.deck) && !options.place && !options.resume_from;
    return may ? environment_text("LOCKSTEP_CONTINUES") : "";
}

/// A run without its directory needs something to continue from.
void settle_absence(RunSetup& run) {
    if (!run.directory || !run.directory->absence()) {
        return;
    }
    auto const& why = *run.directory->absence();
    if (!run.found || run.copies.run == 0) {
        throw Error(why);
    }
    run.without = concat("warning: run directory ", run.directory->path().string(),
                         " cannot be used now (", why.text().what, ": ", why.text().why,
                         "). The run continues without it, and writes records and checkpoints "
                         "when it is back");
}

/// Copies that are newer than what claims to be the newest checkpoint spare its verification.
void find_state(comm::Communicator const& world, RunSetup& run,
                std::filesystem::path const& checkpoints) {
    auto& newest = run.newest_file;
    comm::agree(world, "looking for checkpoints", [&] {
        if (world.is_root()) {
            newest = newest_listed(run, checkpoints);
        }
    });
    newest = comm::all_reduce(world, newest, comm::Reduce::maximum);
    if (find_in_memory(world, run, newest)) {
        return;
    }
    run.found = found_for(world, run.deck, run.local, run.requeued);
    auto const good = run.found ? run.found->step : -1;
    if (good < newest) { // what is newer is damaged
        newest = good;
        find_in_memory(world, run, good);
    }
}

} // namespace

RunSetup set_up_run(comm::Communicator const& world, RunOptions const& options) {
    RunSetup run;
    run.deck = options.deck;
    run.place = options.place;
    run.correction = options.correction;
    run.force = options.force;
    auto& deck = run.deck;
    auto const checkpoints = std::filesystem::path(deck.run.directory) / "checkpoints";
    bool requeued = false;
    std::uint64_t archived = 0; // whose copies in memory are, too
    comm::agree(world, "opening the run's directory", [&] {
        require_possible(deck, world.size());
        if (world.is_root()) {
            run.directory = std::make_shared<RunDirectory>(
                deck.run.directory, continued_run(options), [&] { comm::progressed(world); });
            if (run.directory->absence()) {
                return;
            }
            requeued = run.directory->is_requeued() && deck.checkpoint.resume != "auto";
            if (deck.checkpoint.resume == "none" && !requeued &&
                std::filesystem::exists(checkpoints)) {
                archived = copies_of(checkpoints);
                run.directory->archive();
            }
            make_own_directory(checkpoints);
            require_writable(checkpoints); // not only when the first one is due
            remove_partials(run.directory->path());
            for (auto const& place : {run.directory->path() / "plots", checkpoints}) {
                if (has_own_place(place)) {
                    remove_partials(place);
                }
            }
        }
    });
    auto const token =
        comm::all_reduce(world, run.directory ? run.directory->token() : 0, comm::Reduce::maximum);
    if (options.held) {
        options.held(token);
    }
    run.local = local_directory(world, deck, checkpoints, run.directory.get());
    run.requeued = comm::all_reduce(world, requeued ? 1 : 0, comm::Reduce::maximum) != 0;
    if (archived = comm::all_reduce(world, archived, comm::Reduce::maximum); archived != 0) {
        checkpoint::remove_copies(checkpoint::memory_directory, archived);
    }
    if (auto const& held = options.resume_from) {
        run.found = checkpoint::Found{.step = 0,
                                      .file = checkpoint::VerifiedFile::in_memory(held->path()),
                                      .skipped = {},
                                      .held = held};
    } else {
        if (!options.place) { // a run alone on its hosts
            run.copies = identify_copies(world, deck, run.directory.get());
        }
        leave_suspects(world, run, checkpoints);
        find_state(world, run, checkpoints);
    }
    comm::agree(world, "opening the run's directory", [&] { settle_absence(run); });
    comm::agree(world, "settling the deck", [&] {
        auto decided = decide(deck, run.found, world.size(), options.force);
        deck = std::move(decided.deck);
        run.forced = std::move(decided.forced);
        run.shares_state = decided.shares_state;
        auto const& resume = options.deck.checkpoint.resume;
        bool const named = run.found && !options.resume_from && run.found->file.path() == resume;
        if (named && world.is_root()) {
            checkpoint::Store const store(checkpoints, 1, {}, run.local);
            run.foreign = options.replay_to == 0 && !store.holds(resume);
            leave_behind(run, checkpoints);
        }
    });
    run.foreign = comm::all_reduce(world, run.foreign ? 1 : 0, comm::Reduce::maximum) != 0;
    if (deck.privacy.is_on()) {
        run.privacy_key = read_privacy_key(world, deck, run.found.has_value());
    }
    return run;
}

} // namespace lockstep::train
