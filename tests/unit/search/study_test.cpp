#include "base/file.hpp"
#include "search/forest.hpp"
#include "search/report.hpp"
#include "search/study.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"
#include "spaces.hpp"

using namespace lockstep;

namespace {

test::SpaceKeys keys_for(std::string const& strategy) {
    return {{"space.a.b", "uniform(0, 1)"},
            {"space.a.c", "choice(x, y, z)"},
            {"search.strategy", strategy},
            {"search.trials", "30"},
            {"search.population", "8"},
            {"search.batch", "3"},
            {"search.minimum-share", "0.1"},
            {"search.goals", "loss min"},
            {"search.seed", "7"}};
}

std::unique_ptr<search::Study> study_in(std::filesystem::path const& directory,
                                        std::string const& strategy) {
    return std::make_unique<search::Study>(
        search::Identity{keys_for(strategy), "deck", "1"},
        std::make_unique<search::Journal>(directory / search::journal_name));
}

/// A function of the values and the share alone; some trials fail.
search::Outcome outcome_of(search::Study const& study, search::Job const& job) {
    auto const& point = study.trials()[static_cast<std::size_t>(job.trial)].point;
    search::Outcome outcome{.trial = job.trial, .share = job.share};
    outcome.code = job.trial % 7 == 3 ? 64 : 0;
    outcome.metrics["loss"] = std::abs(point[0] - 0.3) + point[1] / 10 + 0.1 / job.share;
    return outcome;
}

/// Decisions: trial and share of each job, in an order that does not depend on arrival.
using Decisions = std::vector<std::pair<std::int64_t, double>>;

/// Runs `width` jobs at once, whose results come in another order for each `turn`.
Decisions run(search::Study& study, std::size_t width, std::uint64_t turn,
              std::size_t max = 100000) {
    Decisions decisions;
    std::vector<search::Job> open;
    for (std::size_t told = 0; told < max;) {
        while (open.size() < width) {
            auto const job = study.next();
            if (!job) {
                break;
            }
            open.push_back(*job);
            decisions.emplace_back(job->trial, job->share);
        }
        if (open.empty()) {
            break;
        }
        auto const at = open.begin() + static_cast<std::ptrdiff_t>(
                                           (turn * 2654435761U + told * turn) % open.size());
        study.tell(outcome_of(study, *at));
        open.erase(at);
        ++told;
    }
    std::ranges::sort(decisions);
    return decisions;
}

} // namespace

TEST_CASE("decisions do not depend on how many jobs run at once, nor on who is done first") {
    for (auto const& strategy : search::strategy_names()) {
        if (strategy == "asha") {
            continue; // it decides by arrival
        }
        INFO(strategy);
        test::ScratchDir const scratch;
        std::filesystem::create_directories(scratch.path() / "a");
        auto const first = study_in(scratch.path() / "a", strategy);
        auto const expected = run(*first, 1, 0);
        CHECK(first->is_finished());
        for (std::uint64_t turn = 1; turn < 5; ++turn) {
            auto const place = scratch.path() / std::to_string(turn);
            std::filesystem::create_directories(place);
            auto const study = study_in(place, strategy);
            CHECK(run(*study, turn * 2, turn) == expected);
            CHECK(study->best() == first->best());
        }
    }
}

TEST_CASE("a search continues from any prefix of its journal") {
    for (auto const& strategy : search::strategy_names()) {
        INFO(strategy);
        test::ScratchDir const scratch;
        std::filesystem::create_directories(scratch.path());
        auto const journal = scratch.path() / search::journal_name;
        std::vector<std::int64_t> best;
        {
            auto const study = study_in(scratch.path(), strategy);
            run(*study, 3, 1);
            best = study->best();
        }
        auto const whole = read_text(journal);
        for (std::size_t bytes = whole.find('\n') + 1; bytes < whole.size(); bytes += 997) {
            std::ofstream(journal, std::ios::trunc)
                << whole.substr(0, bytes); // perhaps a torn line
            {
                auto const study = study_in(scratch.path(), strategy);
                run(*study, 3, 2);
                CHECK(study->is_finished());
                if (strategy != "asha") {
                    CHECK(study->best() == best);
                }
            }
            CHECK(search::Study::look_at(scratch.path())->is_finished());
        }
    }
}

TEST_CASE("asha decides the same when its journal is read again") {
    test::ScratchDir const scratch;
    std::filesystem::create_directories(scratch.path());
    auto const study = study_in(scratch.path(), "asha");
    run(*study, 4, 3);
    auto const again = search::Study::look_at(scratch.path());
    CHECK(again->best() == study->best());
    CHECK(again->trials().size() == study->trials().size());
    CHECK(search::write_report(*again, scratch.path()).find("## Trials") != std::string::npos);
}

TEST_CASE("a damaged journal, or one of another search, is refused") {
    test::ScratchDir const scratch;
    std::filesystem::create_directories(scratch.path());
    auto const journal = scratch.path() / search::journal_name;
    run(*study_in(scratch.path(), "random"), 2, 1);
    auto const whole = read_text(journal);
    auto const code_of = [&](std::string const& text) {
        std::ofstream(journal, std::ios::trunc) << text;
        return test::error_of([&] { study_in(scratch.path(), "random"); }).code();
    };
    for (std::size_t at = 0; at < whole.size() - 1; at += 211) {
        auto text = whole;
        text[at] = text[at] == 'x' ? 'y' : 'x';
        INFO(at);
        CHECK(code_of(text) == ExitCode::data);
    }
    auto const line = whole.find('\n', whole.size() / 2) + 1;
    auto const next = whole.find('\n', line) + 1;
    CHECK(code_of(whole.substr(0, line) + whole.substr(next)) == ExitCode::data); // one is missing
    std::ofstream(journal, std::ios::trunc) << whole;
    CHECK(test::error_of([&] { study_in(scratch.path(), "grid"); }).code() == ExitCode::usage);
    auto const study = study_in(scratch.path(), "random");
    CHECK(test::error_of([&] { study->tell({.trial = 0}); }).code() == ExitCode::usage);
}

TEST_CASE("any byte of a journal that is another one is found, and a torn last line is left out") {
    test::ScratchDir const scratch;
    std::filesystem::create_directories(scratch.path());
    auto const journal = scratch.path() / search::journal_name;
    run(*study_in(scratch.path(), "random"), 2, 1, 2);
    auto const whole = read_text(journal);
    auto const lines = search::Journal::read(journal).size();
    for (std::size_t at = 0; at < whole.size(); ++at) { // any byte is another one
        auto text = whole;
        text[at] = static_cast<char>(text[at] ^ 1);
        std::ofstream(journal, std::ios::trunc) << text;
        INFO(at);
        CHECK(test::error_of([&] { search::Journal::read(journal); }).code() == ExitCode::data);
    }
    for (std::size_t bytes = whole.rfind('\n', whole.size() - 2) + 1; bytes < whole.size();
         ++bytes) {
        std::ofstream(journal, std::ios::trunc) << whole.substr(0, bytes); // what a kill leaves
        CHECK(search::Journal::read(journal).size() == lines - 1);
    }
}

TEST_CASE("a journal of whole lines that say nothing of a search is refused") {
    using Json = nlohmann::json;
    Json const first{
        {"event", "search"}, {"space", keys_for("random")}, {"deck", "deck"}, {"version", "1"}};
    Json const ask{{"event", "ask"}, {"trial", 0}, {"share", 1.0}};
    for (auto const& lines : std::vector<std::vector<Json>>{
             {{{"event", 3}}},
             {{{"event", "search"}}},
             {{{"event", "search"}, {"space", 3}, {"deck", "deck"}, {"version", "1"}}},
             {first, {{"event", 3}}},
             {first, {{"no", "event"}}},
             {first, {{"event", "ask"}}},
             {first, {{"event", "ask"}, {"trial", "x"}, {"share", 1.0}}},
             {first, {{"event", "ask"}, {"trial", 7}, {"share", 1.0}}},
             {first, ask, {{"event", "result"}, {"trial", 0}}},
             {first,
              ask,
              {{"event", "result"},
               {"trial", -1},
               {"share", 1.0},
               {"code", 0},
               {"step", 1},
               {"steps", 1},
               {"seconds", 1},
               {"ranks", 1}}},
             {first,
              ask,
              {{"event", "result"},
               {"trial", 0},
               {"share", 1.0},
               {"code", std::int64_t{1} << 32}, // 0 in 32 bits
               {"step", 1},
               {"steps", 1},
               {"seconds", 1},
               {"ranks", 1}}},
             {first, {{"event", "retry"}}},
             {first, {{"event", "left"}}},
             {first, {{"event", "begin"}, {"trial", 0}}},
             {first, {{"event", "usage"}, {"rank_seconds", "many"}}}}) {
        test::ScratchDir const scratch;
        std::filesystem::create_directories(scratch.path());
        {
            search::Journal journal(scratch.path() / search::journal_name);
            for (auto const& line : lines) {
                journal.append(line);
            }
        }
        INFO(lines.back().dump());
        CHECK(test::error_of([&] { study_in(scratch.path(), "random"); }).code() == ExitCode::data);
        CHECK(test::error_of([&] { search::Study::look_at(scratch.path()); }).code() ==
              ExitCode::data);
    }
}

TEST_CASE("a death counts for a trial that ran, until it comes to a newer checkpoint") {
    test::ScratchDir const scratch;
    std::filesystem::create_directories(scratch.path());
    auto study = study_in(scratch.path(), "random");
    auto const job = study->next().value();
    auto const note = [&](std::string const& event, std::int64_t step) {
        study->note({{"event", event}, {"trial", job.trial}, {"step", step}});
    };
    auto const deaths = [&](std::int64_t step) { return study->deaths(job.trial, step); };
    auto const start = [&] { // the same after a kill, and after another one before it began again
        for (int n = 0; n < 2; ++n) {
            study = nullptr;
            study = study_in(scratch.path(), "random");
            study->note({{"event", "start"}, {"ranks", 1}});
        }
    };
    start();
    CHECK(deaths(-1) == 0);
    note("begin", -1);
    CHECK(deaths(-1) == 0); // it runs
    start();
    CHECK(deaths(-1) == 1);
    CHECK(deaths(2) == 0); // a checkpoint came meanwhile
    note("begin", -1);
    start();
    CHECK(deaths(-1) == 2); // in a row
    note("begin", 4);
    start();
    CHECK(deaths(4) == 1); // from the newer checkpoint on
    for (auto const* const end : {"left", "retry"}) {
        note("begin", 4);
        note(end, 4);
        start();
        CHECK(deaths(4) == 1); // nobody died, and nothing was gained
    }
    note("begin", 6);
    note("left", 6);
    start();
    CHECK(deaths(6) == 0);
    note("begin", 6);
    start();
    CHECK(deaths(6) == 1);
    study->tell(outcome_of(*study, job));
    CHECK(deaths(6) == 0);
    start();
    CHECK(deaths(6) == 0);
}

TEST_CASE("open jobs are given out again in the order in which they were asked for") {
    test::ScratchDir const scratch;
    std::filesystem::create_directories(scratch.path());
    std::vector<std::int64_t> asked;
    {
        auto const study = study_in(scratch.path(), "pbt");
        for (int n = 0; n < 8; ++n) {
            study->tell(outcome_of(*study, *study->next()));
        }
        while (auto const job = study->next()) { // new trials, then their parents
            asked.push_back(job->trial);
        }
    }
    CHECK(asked.front() == 8);
    auto const again = study_in(scratch.path(), "pbt");
    for (auto const trial : asked) {
        CHECK(again->next()->trial == trial);
    }
}

TEST_CASE("values that no number lies between can be told apart") {
    std::vector<std::vector<double>> rows;
    std::vector<double> targets;
    for (int i = 0; i < 20; ++i) {
        rows.push_back({i % 2 == 0 ? 0.3 : 0.30000000000000004}); // 0.1 + 0.2
        targets.push_back(i % 2);
    }
    CHECK(search::permutation_importance(rows, targets) == std::vector<double>{1});
}
