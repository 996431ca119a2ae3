#include "base/file.hpp"
#include "base/text.hpp"
#include "report/watch.hpp"

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::monitor;
using namespace lockstep::report;

namespace {

constexpr char const* start =
    "{\"event\": \"start\", \"model\": \"cnn\", \"ranks\": 2, \"hosts\": [\"a\", \"b\"], "
    "\"devices\": "
    "[\"cpu\", \"cpu\"], \"replicas\": 2, \"batch\": 8, \"steps_per_epoch\": 50, \"total_steps\": "
    "100}\n";

std::string step(int n) {
    return concat(
        "{\"event\": \"step\", \"step\": ", n, ", \"loss\": ", 10.0 / n,
        ", \"samples_per_s\": 1000, \"step_ms\": 20, \"forward_ms\": 5, \"straggler\": 1, "
        "\"straggler_ms\": 3}\n");
}

class Written {
  public:
    explicit Written(std::string const& text) : run_(scratch_.path()) {
        File::append(scratch_ / "metrics.jsonl").append_text(text);
        run_.read();
    }

    std::string page(Looks const& looks = {}, double silence_s = 0) const {
        return joined(dashboard(run_, silence_s, looks), "\n");
    }
    RunRecords const& run() const { return run_; }

  private:
    test::ScratchDir scratch_;
    RunRecords run_;
};

bool holds(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

std::string steps() {
    std::string text = start;
    for (int n = 1; n <= 40; ++n) {
        text += step(n);
    }
    return text;
}

} // namespace

TEST_CASE("a dashboard says what is known, and whether the run is alive") {
    Written const written(steps());
    auto const page = written.page();
    CHECK(holds(page, "running"));
    CHECK(holds(page, " 40 %  step 40 of 100  epoch 0.80  1.2 s left"));
    CHECK(holds(page, "loss        0.2500"));
    CHECK(holds(page, "forward        5.00"));
    CHECK(holds(page, "rank 1 on b: the others wait 3.0 ms"));
    CHECK_FALSE(holds(page, "\033"));
    CHECK_FALSE(holds(page, "validation"));
    CHECK(holds(written.page({}, 600), "no sign of activity for 10 min 00 s"));
}

TEST_CASE("the time that is left follows a change of pace, but not a single slow step") {
    auto const at_pace = [](std::string text, int from, int to, int ms) {
        for (int n = from; n <= to; ++n) {
            text += concat("{\"event\": \"step\", \"step\": ", n,
                           ", \"loss\": 1, \"step_ms\": ", ms, "}\n");
        }
        return text;
    };
    CHECK(holds(Written(at_pace(start, 1, 1, 900)).page(), "1 min 29 s left"));
    auto const early = at_pace(at_pace(start, 1, 1, 900), 2, 20, 100);
    CHECK(holds(Written(early).page(), "8.0 s left"));
    CHECK(holds(Written(at_pace(early, 21, 21, 5000)).page(), "7.9 s left"));
    CHECK(holds(Written(at_pace(early, 21, 25, 400)).page(), "30.0 s left"));
}

TEST_CASE("all metrics are shown, in as many lines as they need") {
    std::string const validation =
        "{\"event\": \"validation\", \"step\": 40, \"loss\": 0.5, \"accuracy\": 0.9, \"auroc\": "
        "0.9, "
        "\"average-precision\": 0.8, \"balanced-accuracy\": 0.7, \"kappa\": 0.6, \"best\": true}\n";
    Written const written(steps() + validation);
    auto const page = written.page();
    CHECK(holds(page, "validation  loss 0.5000  accuracy 90.00 %  auroc 0.9000"));
    CHECK(holds(page, "\n            "));
    for (char const* const word :
         {"balanced-accuracy 0.7000", "kappa 0.6000", "at step 40", "best so far"}) {
        CHECK(holds(page, word));
        CHECK(holds(written.page({.size = {30, 60}}), word));
    }
}

TEST_CASE("a failure is shown, without commands to the terminal") {
    Written const written(steps() + "{\"event\": \"failure\", \"cause\": \"rank 1\", \"message\": "
                                    "\"lost\\u001b[2J\\nnow\"}\n");
    auto const page = written.page();
    CHECK(holds(page, "failed"));
    CHECK(holds(page, "rank 1: lost\\x1b[2J now"));
}

TEST_CASE("a run that failed before it began has failed") {
    Written const written("{\"event\": \"failure\", \"cause\": \"opening the data\", \"message\": "
                          "\"there is none\"}\n");
    auto const page = written.page();
    CHECK(holds(page, "failed"));
    CHECK(holds(page, "opening the data: there is none"));
    CHECK_FALSE(holds(page, "0 parameters"));
}

TEST_CASE("every line fits, whatever the window") {
    for (auto const& text : {steps(), std::string(start), std::string("\n")}) {
        Written const written(text);
        for (std::size_t const columns : {1, 20, 33, 61, 200}) {
            for (std::size_t const rows : {1, 10, 60}) {
                for (bool const utf8 : {false, true}) {
                    Looks const looks{{columns, rows}, Paint(utf8), utf8, true};
                    auto const lines = dashboard(written.run(), 0, looks);
                    CHECK(lines.size() <= rows);
                    for (auto const& line : lines) {
                        CHECK(columns_of(line) <= columns);
                    }
                }
            }
        }
    }
}

TEST_CASE("what is cut keeps its colours' ends and whole letters") {
    Paint const paint(true);
    auto const text = paint(Style::red, "ab\u2588cd");
    CHECK(columns_of(text) == 5);
    CHECK(cut(text, 3) == "\033[31mab\u2588\033[0m");
    CHECK(cut("abc", 0).empty());
    CHECK(Paint(false)(Style::red, "a") == "a");
}
