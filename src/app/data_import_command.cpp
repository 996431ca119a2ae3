#include "app/command.hpp"
#include "base/clock.hpp"
#include "base/escaped.hpp"
#include "base/some_of.hpp"
#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "import/import.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "monitor/progress_bar.hpp"
#include "monitor/terminal.hpp"

#include <algorithm>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "import_options.hpp"

namespace lockstep::app {

namespace {

constexpr double seconds_between_lines = 10;
constexpr std::size_t max_classes = 20; ///< in a line

/// A bar on a terminal; elsewhere a line now and then.
class ImportDisplay {
  public:
    explicit ImportDisplay(bool shown) : shown_(shown), bar_(shown && monitor::on_terminal()) {}

    void show(std::string const& what, std::int64_t done, std::int64_t all) {
        bar_.draw(done, all, {what});
        if (shown_ && !bar_.shown() && since_line_.seconds() > seconds_between_lines) {
            std::cout << what << ": " << count_text(done) << " of " << count_text(all) << std::endl;
            since_line_.restart();
        }
    }
    void clear() { bar_.clear(); }

  private:
    bool shown_;
    monitor::ProgressBar bar_;
    Stopwatch since_line_;
};

void print(import::ImportReport const& report, std::vector<std::string> const& classes,
           std::vector<std::string> const& remarks) {
    if (report.parts_kept > 0) {
        std::cout << "kept " << count_text(report.parts_kept, "part")
                  << " of an interrupted import\n";
    }
    bool shortened = false;
    for (auto const& set : report.sets) {
        std::cout << (set.name.empty() ? "all" : set.name) << ": "
                  << count_text(set.samples, "sample");
        if (set.groups > 0) {
            std::cout << " of " << count_text(set.groups, "group");
        }
        auto const& counts = set.class_counts;
        bool const classified =
            std::any_of(counts.begin(), counts.end(), [](auto count) { return count > 0; });
        std::vector<std::string> texts;
        for (std::size_t c = 0; classified && c < counts.size(); ++c) {
            texts.push_back(concat(escaped_line(classes[c]), " ", count_text(counts[c])));
        }
        std::cout << (classified ? "; " : "") << some_of(texts, max_classes) << "\n";
        shortened |= texts.size() > max_classes;
    }
    if (shortened) {
        std::cout << "lockstep data info FILE shows the samples of all classes\n";
    }
    for (auto const& text : remarks) {
        std::cout << escaped_line(text) << "\n";
    }
    for (auto const& text : report.notes) {
        std::cout << escaped_line(text) << "\n";
    }
    for (auto const& text : report.skipped) {
        std::cout << "skipped " << escaped_line(text) << "\n";
    }
    for (auto const& file : report.files) {
        std::cout << escaped_line(file.path.string()) << ": " << count_text(file.samples)
                  << " samples, " << bytes_text(file.bytes) << "\n";
    }
}

/// Throws  Error 75 when a signal has asked for an end
void stop_if_asked(SignalRequests const& signals) {
    if (signals.pending() != 0) {
        throw Error(ExitCode::interrupted,
                    {"the import was interrupted", "a signal asked it to stop",
                     "Run the same command again to resume it"});
    }
}

std::unique_ptr<import::ImportSource> source_of(std::vector<std::string> const& words,
                                                ImportTold& told) {
    auto const name = words.empty() ? std::string() : words.front();
    for (auto const& kind : import_kinds(told)) {
        if (kind.name == name) {
            auto const positions = parse_import(told, kind, {words.begin() + 1, words.end()});
            auto const& [from, out] = std::pair(positions.at(0), positions.at(1));
            told.common.out = out;
            if (std::error_code none; std::filesystem::equivalent(from, out, none)) {
                throw Error(ExitCode::usage, {concat(out, " is also the source of the import"),
                                              "the import would replace its own source",
                                              "Name a different file as OUT"});
            }
            return kind.make(from);
        }
    }
    throw Error(ExitCode::usage,
                {name.empty() ? std::string("lockstep data import needs the kind of source")
                              : concat("unknown kind of source ", name),
                 concat("the kinds are ", list_text(import_kind_names())),
                 suggestion(name, import_kind_names(),
                            concat("Usage: ", import_options(told, {}).usage()))});
}

ExitCode import_all(monitor::CommandContext& context, std::vector<std::string> const& words,
                    SignalRequests const& signals) {
    ImportTold told;
    auto& options = told.common;
    options.before_part = [&] { stop_if_asked(signals); };
    std::unique_ptr<import::ImportSource> source;
    comm::agree(context.world, "reading the list of what to import",
                [&] { source = source_of(words, told); });
    ImportDisplay display(context.world.is_root());
    auto const report = import::import_set(
        context.world, *source, options,
        [&](auto const& what, auto done, auto all) { display.show(what, done, all); });
    display.clear();
    if (context.world.is_root()) {
        print(report, source->form().class_names, source->remarks());
    }
    return ExitCode::ok;
}

} // namespace

ExitCode data_import_command(Invocation const& invocation) {
    SignalRequests const signals(SignalRequests::Hangup::request);
    return monitor::run_collectively(invocation.argc, invocation.argv,
                                     [&](monitor::CommandContext& context) {
                                         return import_all(context, invocation.arguments, signals);
                                     });
}

} // namespace lockstep::app
