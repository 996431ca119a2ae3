#include "report/plots.hpp"

#include "base/child.hpp"
#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/own_directory.hpp"
#include "base/partial_file.hpp"
#include "base/scratch_directory.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <span>

#include "chart_script.hpp"
#include "charts.hpp"

namespace lockstep::report {

namespace {

constexpr double version_limit_s = 10;
constexpr char const* script_name = "plots.gp";

void require_gnuplot(double limit_s) {
    if (!output_of({"gnuplot", "--version"}, std::min(version_limit_s, limit_s))) {
        throw Error(ExitCode::unavailable,
                    {"no pictures were drawn", "gnuplot is not installed, or cannot be started",
                     "Try gnuplot --version, and install gnuplot if that fails (Debian: "
                     "gnuplot-nox). Then draw the pictures with lockstep report"});
    }
}

/// Whether a picture was drawn; it has its name then.
bool take(std::filesystem::path const& drawn, std::filesystem::path const& file) {
    std::error_code failure;
    auto const bytes = std::filesystem::file_size(drawn, failure);
    if (failure || bytes == 0) {
        return false;
    }
    auto const picture = read_text(drawn);
    PartialFile partial(partial_path(file));
    File::create_new(partial.path()).write_at(0, std::as_bytes(std::span(picture)));
    partial.rename_unsynced(file);
    return true;
}

} // namespace

std::vector<std::string> draw_plots(std::vector<monitor::RunRecords> const& runs,
                                    std::filesystem::path const& directory,
                                    PlotOptions const& options) {
    return draw_charts(runs.size() == 1 ? charts_of(runs.front()) : charts_of(runs), directory,
                       options);
}

std::vector<std::string> draw_charts(std::vector<Chart> const& charts,
                                     std::filesystem::path const& directory,
                                     PlotOptions const& options) {
    Stopwatch const watch;
    if (charts.empty()) {
        return {};
    }
    require_gnuplot(options.limit_s / 2);
    make_own_directory(directory);
    // The script is for any directory. It runs in one that nobody else can exchange: gnuplot
    // follows links, and a script can do anything.
    auto const place = std::filesystem::absolute(directory);
    auto const script = place / script_name;
    auto const text = script_of(charts, options.formats);
    write_text_durably(script, text);
    ScratchDirectory const scratch;
    auto const& own = scratch.path();
    write_text_durably(own / script_name, text);
    bool const drawn =
        output_of({"sh", "-c", "cd \"$0\" && exec gnuplot -d plots.gp", own.string()},
                  options.limit_s - watch.seconds())
            .has_value();
    std::vector<std::string> files;
    for (auto const& format : options.formats) {
        for (auto const& chart : charts) {
            auto const file = concat(chart.file, ".", format);
            if (take(own / file, place / file) && drawn && format == options.formats.front()) {
                files.push_back(file);
            }
        }
    }
    if (!drawn || files.empty()) {
        throw Error(ExitCode::io,
                    {concat("no pictures were drawn in ", directory.string()),
                     concat("gnuplot failed on ", script.string()),
                     "Run gnuplot on that script in the script's directory to see the reason"});
    }
    return files;
}

namespace {

class Plots : public train::Observer {
  public:
    Plots(std::filesystem::path directory, double limit_s)
        : directory_(std::move(directory)), limit_s_(limit_s) {}

    void on(train::Event const& event) override {
        auto const* const ended = std::get_if<train::Ended>(&event);
        // Who was asked to leave has other things to do with the time that is left.
        if (ended == nullptr || ended->reason != "finished") {
            return;
        }
        std::vector<monitor::RunRecords> runs{monitor::RunRecords(directory_)};
        runs[0].read();
        draw_plots(runs, directory_ / "plots", {.limit_s = limit_s_});
    }

  private:
    std::filesystem::path directory_;
    double limit_s_;
};

} // namespace

std::unique_ptr<train::Observer> make_plots(config::Deck const& deck) {
    // The others' patience has an end.
    auto const limit_s = static_cast<double>(deck.communication.timeout_seconds) / 4;
    return std::make_unique<Plots>(deck.run.directory, std::clamp(limit_s, 1.0, 60.0));
}

} // namespace lockstep::report
