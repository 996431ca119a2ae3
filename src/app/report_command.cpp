#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "report/report.hpp"

#include <iostream>

#include "command_help.hpp"

namespace lockstep::app {

namespace {

constexpr char const* report_usage =
    "lockstep report RUN... [--output DIRECTORY] [--format png,pdf,svg] [--price-per-hour P] "
    "[--overwrite]";
constexpr char const* report_help =
    R"(lockstep report RUN... [--output DIRECTORY] [--format png,pdf,svg] [--price-per-hour P]
                   [--overwrite]
    Draws pictures (PNG, or the formats named) and writes report.md: of one run into its own
    directory, of several in comparison into report/; or into DIRECTORY, where a report of before
    is replaced with --overwrite only. RUN is a run's directory or its metrics.jsonl. P is the price
    of a rank's hour.
)";

std::vector<std::string> formats_of(std::string const& text) {
    std::vector<std::string> formats;
    for (auto const& part : split(text, ',')) {
        formats.emplace_back(trimmed(part));
        require_one_of("--format", formats.back(), {"png", "pdf", "svg"});
    }
    return formats;
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
    auto const own = runs[0].path().parent_path();
    return runs.size() > 1 ? "report" : own.empty() ? "." : own;
}

std::optional<double> price_of(std::string const& text) {
    if (text.empty()) {
        return std::nullopt;
    }
    auto const price = number_of<double>(text);
    if (!price || !(*price >= 0)) {
        throw Error(ExitCode::usage,
                    {concat("--price-per-hour ", text), "expected a number of at least 0",
                     "Name what a rank costs an hour, in any currency"});
    }
    return price;
}

} // namespace

ExitCode report_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (take_flag(arguments, "--help")) {
        std::cout << report_help;
        return ExitCode::ok;
    }
    auto const price = price_of(take_option(arguments, "--price-per-hour", ""));
    auto const output = take_option(arguments, "--output", "");
    auto const formats = formats_of(take_option(arguments, "--format", "png"));
    bool const overwrite = take_flag(arguments, "--overwrite");
    expect_arguments(arguments, 1, 100, report_usage);
    std::vector<monitor::RunRecords> runs;
    runs.reserve(arguments.size());
    for (auto const& argument : arguments) {
        runs.push_back(records_of(argument));
    }
    report::ReportOptions const options{.directory = place_of(runs, output), .price = price};
    if (!output.empty()) {
        require_free(options.directory / "report.md", overwrite);
    }
    std::vector<std::string> pictures;
    try {
        pictures = report::draw_plots(runs, options.directory / "plots", {.formats = formats});
    } catch (Error const& error) {
        std::cerr << "lockstep: warning: " << error.what() << "\n";
    }
    std::cout << report::write_report(runs, options, pictures) << "\n"
              << (options.directory / "report.md").string() << "\n";
    return ExitCode::ok;
}

} // namespace lockstep::app
