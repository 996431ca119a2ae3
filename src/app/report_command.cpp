#include "lockstep/base/number.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/monitor/report.hpp"

#include <iostream>

#include "command.hpp"

namespace lockstep::app {

namespace {

constexpr char const* usage = "lockstep report RUN... [--output DIRECTORY] [--price-per-hour P]";
constexpr char const* help =
    R"(lockstep report RUN... [--output DIRECTORY] [--price-per-hour P]
    Draws pictures (PNG) and writes report.md: of one run into its own directory, of several in
    comparison into report/; or into DIRECTORY. RUN is a run's directory. P is the price of a
    rank's hour.
)";

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
        std::cout << help;
        return ExitCode::ok;
    }
    auto const price = price_of(take_option(arguments, "--price-per-hour", ""));
    auto const output = take_option(arguments, "--output", "");
    expect_arguments(arguments, 1, 100, usage);
    std::vector<monitor::RunRecords> runs;
    for (auto const& argument : arguments) {
        runs.emplace_back(argument);
        runs.back().read();
    }
    monitor::ReportOptions const options{.directory =
                                             !output.empty()    ? std::filesystem::path(output)
                                             : runs.size() == 1 ? runs[0].path().parent_path()
                                                                : std::filesystem::path("report"),
                                         .price = price};
    std::vector<std::string> pictures;
    try {
        pictures = monitor::draw_plots(runs, options.directory / "plots");
    } catch (Error const& error) {
        std::cerr << "lockstep: warning: " << error.what() << "\n";
    }
    std::cout << monitor::write_report(runs, options, pictures) << "\n"
              << (options.directory / "report.md").string() << "\n";
    return ExitCode::ok;
}

} // namespace lockstep::app
