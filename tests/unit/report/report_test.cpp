#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "report/plots.hpp"
#include "report/report.hpp"
#include "report/summary.hpp"

#include <cmath>
#include <cstdlib>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::monitor;
using namespace lockstep::report;

namespace {

/// A run of two epochs, with `rate` samples/s on so many ranks.
RunRecords run_in(std::filesystem::path const& directory, int ranks, double rate) {
    std::filesystem::create_directories(directory);
    auto text =
        concat("{\"event\": \"start\", \"model\": \"cnn\", \"parameters\": 7, \"ranks\": ", ranks,
               ", \"steps_per_epoch\": 10, \"total_steps\": 20}\n");
    for (int step = 1; step <= 20; ++step) {
        text +=
            concat("{\"event\": \"step\", \"step\": ", step, ", \"epoch\": ", 0.1 * step,
                   ", \"loss\": ", 5.0 / step,
                   ", \"step_ms\": ", step == 1 ? 900 : 10, // everything is done for the first time
                   ", \"forward_ms\": ", step == 1 ? 890 : 4, ", ", "\"samples_per_s\": ", rate,
                   ", \"elapsed_s\": ", 180 * step, "}\n");
    }
    text += "{\"event\": \"validation\", \"step\": 20, \"epoch\": 2, \"loss\": 0.5, \"accuracy\": "
            "0.9, \"f1.coat\": 0.8, \"edit distance\": 12, \"best\": true}\n";
    File::append(directory / "metrics.jsonl").append_text(text);
    RunRecords run(directory);
    run.read();
    return run;
}

bool has_gnuplot() {
    return std::system("gnuplot --version > /dev/null 2>&1") == 0;
}

bool is_png(std::filesystem::path const& file) {
    return read_text(file).starts_with("\x89PNG\r\n\x1a\n");
}

} // namespace

TEST_CASE("speed-up and efficiency are over the run of the fewest ranks") {
    test::ScratchDir const scratch;
    std::vector<RunRecords> const runs{run_in(scratch / "four", 4, 3000),
                                       run_in(scratch / "one", 1, 1000)};
    auto const all = summarize(runs);
    CHECK(all[0].speed_up == Approx(3));
    CHECK(all[0].efficiency == Approx(0.75));
    CHECK(all[1].speed_up == Approx(1));
    CHECK(all[0].rank_hours == Approx(4));
    CHECK(all[0].metric == "accuracy");
    CHECK(all[0].best == 0.9);
    auto const text = write_report(runs, {scratch / "out", 2.5}, {"loss.png"});
    CHECK(text == read_text(scratch / "out/report.md"));
    CHECK(text.find("accuracy 90.0 % at 20") != std::string::npos);
    CHECK(text.find("| 3.00 | 75.0 % |") != std::string::npos);
    CHECK(text.find("| 10.00 |") != std::string::npos);
    CHECK(text.find("(plots/loss.png)") != std::string::npos);
}

TEST_CASE("all metrics are told, of the best and the last validation and of the test") {
    test::ScratchDir const scratch;
    run_in(scratch / "one", 1, 1000);
    File::append(scratch / "one/metrics.jsonl")
        .append_text(
            "{\"event\": \"validation\", \"step\": 30, \"epoch\": 3, \"loss\": 0.75, \"accuracy\": "
            "0.8, \"auroc\": 0.6, \"kappa\": null}\n{\"event\": \"test\", \"step\": 20, \"epoch\": "
            "2, "
            "\"loss\": 0.5, \"accuracy\": 0.85}\n");
    RunRecords run(scratch / "one");
    run.read();
    auto const text = write_report({run}, {scratch / "out", {}}, {});
    CHECK(text.find("## Metrics of one\n\n| metric | best validation (step 20, epoch 2.00) | last "
                    "validation (step 30, epoch 3.00) | test (step 20, epoch 2.00) |\n") !=
          std::string::npos);
    CHECK(text.find("| accuracy | 90.0 % | 80.0 % | 85.0 % |\n") != std::string::npos);
    CHECK(text.find("| auroc | – | 0.6000 | – |\n") != std::string::npos);
    CHECK(text.find("| loss | 0.5000 | 0.7500 | 0.5000 |\n") != std::string::npos);
    CHECK(text.find("f1.coat") == std::string::npos);
    CHECK(text.find("kappa") == std::string::npos); // nothing was measured
}

TEST_CASE("many metrics are drawn in several pictures, each with all names") {
    if (!has_gnuplot()) {
        WARN("no gnuplot here: no pictures are drawn");
        return;
    }
    test::ScratchDir const scratch;
    std::filesystem::create_directory(scratch / "many");
    std::string text = "{\"event\": \"start\", \"ranks\": 1, \"steps_per_epoch\": 10}\n";
    std::vector<std::string> const names{"accuracy",          "auroc",  "average-precision",
                                         "balanced-accuracy", "f1",     "kappa",
                                         "precision",         "recall", "top-3"};
    for (int step = 10; step <= 40; step += 10) {
        for (char const* const set : {"validation", "test"}) {
            text += concat("{\"event\": \"", set, "\", \"step\": ", step, ", \"loss\": 0.5");
            for (auto const& name : names) {
                text += concat(", \"", name, "\": 0.", step);
            }
            text += "}\n";
        }
    }
    text +=
        "{\"event\": \"end\", \"reason\": \"finished\", \"best_metric\": \"kappa\", \"best\": 0.4, "
        "\"best_step\": 40}\n";
    write_text_durably(scratch / "many/metrics.jsonl", text);
    std::vector<RunRecords> runs{RunRecords(scratch / "many")};
    runs[0].read();
    auto const files = draw_plots(runs, scratch / "plots");
    for (char const* const file : {"metric.png", "metrics_2.png", "metrics_3.png"}) {
        CHECK(std::count(files.begin(), files.end(), file) == 1);
    }
    auto const script = read_text(scratch / "plots/plots.gp");
    for (auto const& name : names) {
        CHECK(script.find(concat("title '", name, ", validation'")) != std::string::npos);
    }
    auto const first = script.substr(script.find("'metric.png'"));
    CHECK(first.find("'kappa, validation'") < first.find("'metrics_2.png'")); // chooses the best
    CHECK(script.find(" (2 of 3)'") != std::string::npos);
}

TEST_CASE("runs of the same colour are told apart by their dashes") {
    if (!has_gnuplot()) {
        WARN("no gnuplot here: no pictures are drawn");
        return;
    }
    test::ScratchDir const scratch;
    std::vector<RunRecords> runs;
    for (int n = 0; n < 8; ++n) {
        runs.push_back(run_in(scratch / concat("run", n), 1, 1000 + n));
    }
    draw_plots(runs, scratch / "plots");
    auto const script = read_text(scratch / "plots/plots.gp");
    CHECK(script.find(" dt 1 lc rgb '#0072B2' title 'run0") != std::string::npos);
    CHECK(script.find(" dt 2 lc rgb '#0072B2' title 'run7") != std::string::npos);
}

TEST_CASE("values at the end of what a double holds are left out of pictures") {
    if (!has_gnuplot()) {
        WARN("no gnuplot here: no pictures are drawn");
        return;
    }
    test::ScratchDir const scratch;
    run_in(scratch / "one", 1, 1000);
    File::append(scratch / "one/metrics.jsonl")
        .append_text("{\"event\": \"step\", \"step\": 21, \"loss\": 1e308, "
                     "\"grad_norm\": -1.7e308}\n");
    std::vector<RunRecords> runs{RunRecords(scratch / "one")};
    runs[0].read();
    CHECK(draw_plots(runs, scratch / "plots").size() == 5);
}

TEST_CASE("gnuplot gets through every picture, of one run and of several") {
    if (!has_gnuplot()) {
        WARN("no gnuplot here: no pictures are drawn");
        return;
    }
    test::ScratchDir const scratch;
    std::vector<RunRecords> runs{run_in(scratch / "it's {one}_run", 1, 1000)};
    auto const few = draw_plots(runs, scratch / "a'b/plots");
    CHECK(few.size() == 5);
    CHECK(std::count(few.begin(), few.end(), "metric.png") == 1);
    CHECK(std::count(few.begin(), few.end(), "metric_edit_distance.png") == 1);
    auto const script = read_text(scratch / "a'b/plots/plots.gp");
    CHECK(script.find("set xrange [0:21] noextend") != std::string::npos); // one validation
    CHECK(script.find("set yrange [0:12]") != std::string::npos);
    CHECK(script.find(" 890") == std::string::npos); // areas end where the picture does
    for (auto const& file : few) {
        CHECK(is_png(scratch / "a'b/plots" / file));
    }
    runs.push_back(run_in(scratch / "two", 2, 1900));
    auto const files = draw_plots(runs, scratch / "plots");
    CHECK(std::find(files.begin(), files.end(), "speed_up.png") != files.end());
    for (auto const& entry : std::filesystem::directory_iterator(scratch / "plots")) {
        CHECK((entry.path().extension() == ".gp" || is_png(entry.path())));
    }
}

TEST_CASE("pictures of every format, of runs that are called alike and measured again") {
    if (!has_gnuplot()) {
        WARN("no gnuplot here: no pictures are drawn");
        return;
    }
    test::ScratchDir const scratch;
    std::string const name(150, 'x');
    std::vector<RunRecords> const runs{
        run_in(scratch / "a" / name, 1, 1000), run_in(scratch / "b" / name, 2, 1900),
        run_in(scratch / "c" / name, 2, 1700), run_in(scratch / "d" / (name + "y"), 4, 3000)};
    auto const files = draw_plots(runs, scratch / "plots", {.formats = {"pdf", "svg", "png"}});
    CHECK(std::find(files.begin(), files.end(), "speed_up.pdf") != files.end());
    CHECK(read_text(scratch / "plots/loss.pdf").starts_with("%PDF"));
    CHECK(read_text(scratch / "plots/loss.svg").find("<svg") != std::string::npos);
    CHECK(is_png(scratch / "plots/loss.png"));
    auto const script = read_text(scratch / "plots/plots.gp");
    for (char const* title : {"a/xxx", "b/xxx", "c/xxx"}) {
        CHECK(script.find(title) != std::string::npos);
    }
    CHECK(script.find(name) == std::string::npos);                // no title as long as that
    CHECK(script.find("\n2 1.8 1.7 1.9\n") != std::string::npos); // one point, and its bar
}

TEST_CASE("every axis has its unit, and a course that is drawn smoothed is smooth") {
    if (!has_gnuplot()) {
        WARN("no gnuplot here: no pictures are drawn");
        return;
    }
    test::ScratchDir const scratch;
    std::vector<RunRecords> runs{run_in(scratch / "one", 1, 1000)};
    std::string noisy = "{\"event\": \"start\", \"ranks\": 1, \"steps_per_epoch\": 10}\n";
    for (int step = 1; step <= 400; ++step) {
        noisy += concat("{\"event\": \"step\", \"step\": ", step,
                        ", \"loss\": ", 1 + 2 * (step % 2), "}\n");
    }
    std::filesystem::create_directory(scratch / "noisy");
    write_text_durably(scratch / "noisy/metrics.jsonl", noisy);
    std::vector<RunRecords> noise{RunRecords(scratch / "noisy")};
    noise[0].read();
    draw_plots(noise, scratch / "noise");
    draw_plots(runs, scratch / "alone");
    runs.push_back(run_in(scratch / "two", 2, 1900));
    draw_plots(runs, scratch / "compared");
    int axes = 0;
    for (char const* const name : {"noise", "alone", "compared"}) {
        for (auto const& line : split(read_text(scratch / name / "plots.gp"), '\n')) {
            bool const of_runs = line.starts_with("set xlabel 'run'"); // which have names
            if ((line.starts_with("set xlabel ") || line.starts_with("set ylabel ")) && !of_runs) {
                CAPTURE(line);
                CHECK(line.find(")'") != std::string::npos);
                ++axes;
            }
        }
    }
    CHECK(axes > 20);
    auto const script = read_text(scratch / "noise/plots.gp");
    auto const begin = script.find("$data1 << EOD\n") + 14; // after each record: the smoothed ones
    auto const points = split(script.substr(begin, script.find("EOD\n", begin) - begin), '\n');
    CHECK(points.size() >= 400);
    for (auto const& point : points) {
        if (auto const numbers = split(point, ' '); numbers.size() == 2) {
            CAPTURE(point);
            CHECK(std::abs(std::stod(numbers[1]) - 2) < 0.2);
        }
    }
}

TEST_CASE("a gnuplot that hangs, talks on or crashes is ended in time") {
    test::ScratchDir const scratch;
    std::vector<RunRecords> const runs{run_in(scratch / "one", 1, 1000)};
    std::string const path = std::getenv("PATH");
    ::setenv("PATH", (scratch.path().string() + ":" + path).c_str(), 1);
    for (char const* what :
         {"sleep 1000", "test \"$1\" = --version || sleep 1000", "exec >&- 2>&-; sleep 1000",
          "sleep 1000 & exit 0", "yes", "kill -SEGV $$", "exit 3", "echo garbage"}) {
        std::filesystem::remove_all(scratch / "plots");
        write_text_durably(scratch / "gnuplot", concat("#!/bin/sh\n", what, "\n"));
        std::filesystem::permissions(scratch / "gnuplot", std::filesystem::perms::owner_all);
        Stopwatch const watch;
        CHECK_THROWS_AS(draw_plots(runs, scratch / "plots", {.limit_s = 1}), Error);
        CHECK(watch.seconds() < 20);
    }
    std::filesystem::remove(scratch / "gnuplot");
    std::filesystem::create_directory(scratch / "gnuplot");
    ::setenv("PATH", scratch.path().c_str(), 1);
    CHECK_THROWS_AS(draw_plots(runs, scratch / "plots", {.limit_s = 1}), Error);
    ::setenv("PATH", path.c_str(), 1);
}

TEST_CASE("a run without steps has no pictures, and what is missing is named") {
    test::ScratchDir const scratch;
    File::append(scratch / "metrics.jsonl").append_text("{\"event\": \"start\"}\n{\"event\": \"st");
    std::vector<RunRecords> runs{RunRecords(scratch.path())};
    runs[0].read();
    CHECK(draw_plots(runs, scratch / "plots").empty());
    CHECK(write_report(runs, {scratch.path(), {}}, {}).find("no end") != std::string::npos);
    std::string const path = std::getenv("PATH");
    ::setenv("PATH", "/nowhere", 1);
    runs.push_back(run_in(scratch / "one", 1, 1000));
    CHECK(test::error_of([&] { draw_plots(runs, scratch / "plots"); }).code() ==
          ExitCode::unavailable);
    ::setenv("PATH", path.c_str(), 1);
}

TEST_CASE("resources are told with their energy and CO2, or that they were not measured") {
    test::ScratchDir const scratch;
    auto const directory = scratch / "run";
    run_in(directory, 2, 1000);
    File::append(directory / "metrics.jsonl")
        .append_text(
            "{\"event\": \"end\", \"reason\": \"finished\", \"resources\": {\"user_s\": 7000, "
            "\"system_s\": 200, \"processor_joules\": 7200000}}\n");
    auto const text_of = [&](std::optional<double> carbon) {
        RunRecords run(directory);
        run.read();
        return write_report({run}, {.directory = scratch / "report", .carbon = carbon}, {});
    };
    CHECK(text_of(std::nullopt).find("| 2.000 |") != std::string::npos); // core-hours
    CHECK(text_of(std::nullopt).find("2.0000 kWh") != std::string::npos);
    CHECK(text_of(std::nullopt).find("CO2") == std::string::npos);
    CHECK(text_of(400).find("| 800.00 g |") != std::string::npos);
    File::append(directory / "metrics.jsonl")
        .append_text("{\"event\": \"start\"}\n{\"event\": \"end\", \"reason\": \"finished\", "
                     "\"resources\": {\"user_s\": 1}}\n");
    CHECK(text_of(400).find("2.0000 kWh") != std::string::npos); // of the attempt that knows it
    auto const plain = run_in(scratch / "plain", 2, 1000);
    CHECK(write_report({plain}, {.directory = scratch / "report"}, {}).find("Resources") ==
          std::string::npos);
}
