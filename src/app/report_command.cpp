#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/notice.hpp"
#include "base/own_file.hpp"
#include "report/plots.hpp"
#include "report/report.hpp"

#include <iostream>

#include "commands.hpp"
#include "output_file.hpp"

namespace lockstep::app {

namespace {

constexpr char const* of_several = "report"; ///< the directory where none is told

struct ReportTold {
    std::string output;
    std::vector<std::string> formats{"png"};
    std::optional<double> price;
    std::optional<double> carbon;
    bool overwrite = false;
};

Options report_options(ReportTold& told) {
    return {
        .command = "lockstep report",
        .positions = {"RUN...", 1, 100},
        .about = "Draws pictures and writes report.md. The report of one run is written into the "
                 "run's directory. The report of several runs compares the runs, and is written "
                 "into the directory report. RUN is a run's directory or its file metrics.jsonl.",
        .rows = {
            option::text("--output DIRECTORY", "write the report into this directory", told.output),
            option::some_of("--format", {"png", "pdf", "svg"}, "formats of the pictures",
                            told.formats),
            option::real("--price-per-hour P", "price of one rank per hour, in any currency",
                         told.price),
            option::real(
                "--carbon-intensity G_PER_KWH",
                "grams of CO2 per kWh of your site's electricity, to report the CO2 of the runs",
                told.carbon),
            option::flag("--overwrite", "replace an existing report in DIRECTORY",
                         told.overwrite)}};
}

monitor::RunRecords records_of(std::string const& named) {
    monitor::RunRecords run(named);
    run.read();
    run.require_of_a_run(named);
    return run;
}

std::filesystem::path place_of(std::vector<monitor::RunRecords> const& runs,
                               std::string const& output) {
    if (!output.empty()) {
        return output;
    }
    if (runs.size() > 1) {
        require_own_place(of_several);
        return of_several;
    }
    auto const own = runs[0].path().parent_path();
    return own.empty() ? "." : own;
}

} // namespace

ExitCode report_command(Invocation const& invocation) {
    ReportTold told;
    auto const words = report_options(told).parse(invocation.arguments);
    std::vector<monitor::RunRecords> runs;
    runs.reserve(words.positions.size());
    for (auto const& argument : words.positions) {
        runs.push_back(records_of(argument));
    }
    report::ReportOptions const options{
        .directory = place_of(runs, told.output), .price = told.price, .carbon = told.carbon};
    if (!told.output.empty()) {
        require_free(options.directory / "report.md", told.overwrite);
    }
    auto const plots = options.directory / "plots";
    require_own_place(plots);
    std::vector<std::string> pictures;
    try {
        pictures = report::draw_plots(runs, plots, {.formats = told.formats});
    } catch (Error const& error) {
        notice(concat("warning: ", error.what()));
    }
    std::cout << report::write_report(runs, options, pictures) << "\n"
              << (options.directory / "report.md").string() << "\n";
    return ExitCode::ok;
}

std::string report_help(HelpWords const&) {
    return help_of(report_options);
}

} // namespace lockstep::app
