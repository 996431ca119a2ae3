#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/clock.hpp"
#include "base/list.hpp"
#include "base/number.hpp"
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

#include "data_import_help.hpp"

namespace lockstep::app {

namespace {

constexpr char const* data_import_usage =
    "lockstep data import KIND SOURCE OUT [options]; see --help";
constexpr double seconds_between_lines = 10;

[[noreturn]] void refuse(std::string const& option, std::string const& value,
                         std::string const& expected) {
    throw Error(ExitCode::usage, {concat(option, " ", value), concat("expected ", expected),
                                  concat("Usage: ", data_import_usage)});
}

template <class Number>
Number number(std::string const& option, std::string const& value, std::string const& expected) {
    auto const parsed = number_of<Number>(value);
    if (!parsed) {
        refuse(option, value, expected);
    }
    return *parsed;
}

/// The command line of an import; options are taken out of it as they are asked for.
class ImportArguments {
  public:
    explicit ImportArguments(std::vector<std::string> words) : words_(std::move(words)) {}

    std::string text(std::string const& option, std::string const& otherwise = "") {
        return take_option(words_, option, otherwise);
    }
    std::vector<std::string> list(std::string const& option, std::string const& otherwise = "") {
        return list_texts(text(option, otherwise));
    }
    bool flag(std::string const& option) { return take_flag(words_, option); }
    std::int64_t count(std::string const& option, std::int64_t otherwise) {
        auto const value = text(option, std::to_string(otherwise));
        auto const parsed = number<std::int64_t>(option, value, "a whole number");
        if (parsed < 0) {
            refuse(option, value, "a whole number of at least 0");
        }
        return parsed;
    }
    /// WxH; zeros where the option is missing.
    std::pair<std::uint64_t, std::uint64_t> size(std::string const& option) {
        auto const value = text(option, "");
        if (value.empty()) {
            return {0, 0};
        }
        std::string const expected = "WIDTHxHEIGHT, each 1 to 16384";
        auto const sides = split(value, 'x');
        if (sides.size() != 2) {
            refuse(option, value, expected);
        }
        auto const width = number<std::uint64_t>(option, sides[0], expected);
        auto const height = number<std::uint64_t>(option, sides[1], expected);
        if (width < 1 || height < 1 || width > 16384 || height > 16384) {
            refuse(option, value, expected);
        }
        return {width, height};
    }
    /// KIND, SOURCE and OUT, when all options have been taken.
    std::vector<std::string> const& positions() {
        expect_arguments(words_, 3, 3, data_import_usage);
        return words_;
    }

  private:
    std::vector<std::string> words_;
};

import::ImportOptions common_options(ImportArguments& arguments){import::ImportOptions options;
for (auto const& share : arguments.list("--split")) {
    options.split.shares.push_back(number<double>("--split", share, "numbers with commas"));
}
options.split.seed = static_cast<std::uint64_t>(arguments.count("--seed", 0));
options.shard_samples = arguments.count("--shard-samples", 0);
options.skip_bad = arguments.flag("--skip-bad");
options.overwrite = arguments.flag("--overwrite");
auto const deflate = arguments.count("--deflate", 0);
if (deflate > 9) {
    refuse("--deflate", std::to_string(deflate), "0 to 9");
}
options.deflate = static_cast<int>(deflate);
return options;
} // namespace

using Source = std::unique_ptr<import::ImportSource>;
/// Makes the source, once the words that are no options are known.
using SourceMaker = std::function<Source(std::filesystem::path const& source)>;

SourceMaker idx(ImportArguments& arguments) {
    auto const classes = arguments.list("--classes");
    return [=](auto const& source) { return import::idx_source({source, classes}); };
}

SourceMaker hdf5(ImportArguments& arguments, std::string const& split_by) {
    import::Hdf5Import options{.source = {},
                               .inputs = arguments.list("--inputs", "inputs"),
                               .targets = arguments.list("--targets", "targets"),
                               .weights = arguments.text("--weights"),
                               .classes = arguments.list("--classes"),
                               .type = arguments.text("--type"),
                               .split_by = split_by};
    return [=](auto const& source) mutable {
        options.source = source;
        return import::hdf5_source(options);
    };
}

import::Alpha alpha(ImportArguments& arguments){
    auto const value = arguments.text("--alpha", "drop");
require_one_of("--alpha", value, {"drop", "blend", "keep"});
return value == "keep"    ? import::Alpha::keep
       : value == "blend" ? import::Alpha::blend
                          : import::Alpha::drop;
} // namespace lockstep::app

SourceMaker images(ImportArguments& arguments, std::string const& split_by) {
    auto const [width, height] = arguments.size("--size");
    import::ImageImport options{.source = {},
                                .labels = {.path = arguments.text("--labels")},
                                .split_by = split_by,
                                .width = width,
                                .height = height,
                                .gray = arguments.flag("--gray"),
                                .alpha = alpha(arguments)};
    return [=](auto const& source) mutable {
        options.source = source;
        return import::image_source(options);
    };
}

SourceMaker video(ImportArguments& arguments, std::string const& split_by) {
    import::VideoImport options{.labels = {.path = arguments.text("--labels")},
                                .split_by = split_by,
                                .gray = arguments.flag("--gray")};
    auto const frames = arguments.count("--frames", 17);
    if (frames < 1) {
        refuse("--frames", "0", "at least 1");
    }
    options.frames = static_cast<std::uint64_t>(frames);
    options.stride = static_cast<std::uint64_t>(arguments.count("--stride", 0));
    auto const [width, height] = arguments.size("--size");
    if (width > 0) {
        options.width = width;
        options.height = height;
    }
    return [=](auto const& source) mutable {
        options.source = source;
        return import::video_source(options);
    };
}

SourceMaker series(ImportArguments& arguments, std::string const& split_by) {
    auto const type = arguments.text("--type", "f32");
    if (type != "f32" && type != "f64") {
        refuse("--type", type, "f32 or f64");
    }
    import::SeriesImport options{.columns = arguments.list("--columns"),
                                 .time = arguments.text("--time"),
                                 .group = arguments.text("--group"),
                                 .target = arguments.text("--target"),
                                 .regression = arguments.flag("--regression"),
                                 .split_by = split_by,
                                 .doubles = type == "f64",
                                 .fill_forward = arguments.flag("--fill-forward")};
    return [=](auto const& source) mutable {
        options.source = source;
        return import::series_source(options);
    };
}

SourceMaker speech(ImportArguments& arguments, std::string const& split_by) {
    auto const units = arguments.text("--units", "characters");
    if (units != "characters" && units != "words") {
        refuse("--units", units, "characters or words");
    }
    auto const bands = arguments.count("--mels", 40);
    if (bands < 1 || bands > 1024) {
        refuse("--mels", std::to_string(bands), "1 to 1024");
    }
    import::SpeechImport options{.labels = {.path = arguments.text("--labels")},
                                 .transcripts = arguments.text("--transcripts"),
                                 .split_by = split_by,
                                 .text = arguments.text("--text", "text"),
                                 .words = units == "words",
                                 .lowercase = arguments.flag("--lowercase"),
                                 .drop = arguments.text("--drop"),
                                 .symbols = arguments.text("--symbols"),
                                 .raw = arguments.flag("--raw"),
                                 .bands = static_cast<std::uint64_t>(bands)};
    return [=](auto const& source) mutable {
        options.source = source;
        return import::speech_source(options);
    };
}

SourceMaker source_maker(std::string const& kind, ImportArguments& arguments,
                         std::string const& split_by) {
    if (kind == "images") {
        return images(arguments, split_by);
    }
    if (kind == "video") {
        return video(arguments, split_by);
    }
    if (kind == "speech") {
        return speech(arguments, split_by);
    }
    if (kind == "series") {
        return series(arguments, split_by);
    }
    if (kind == "hdf5") {
        return hdf5(arguments, split_by);
    }
    if (!split_by.empty()) {
        refuse("--split-by", split_by, concat("nothing for ", kind, ", which has no groups"));
    }
    if (kind == "idx") {
        return idx(arguments);
    }
    throw Error(ExitCode::usage, {concat("lockstep data import ", kind),
                                  concat("there are ", joined(import_kinds(), ", ")),
                                  concat("Usage: ", data_import_usage)});
}

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
        std::cout << "continued with " << count_text(report.parts_kept)
                  << " parts of an interrupted import\n";
    }
    for (auto const& set : report.sets) {
        std::cout << (set.name.empty() ? "all" : set.name) << ": " << count_text(set.samples)
                  << " samples";
        if (set.groups > 0) {
            std::cout << " of " << count_text(set.groups) << " groups";
        }
        auto const& counts = set.class_counts;
        bool const classified =
            std::any_of(counts.begin(), counts.end(), [](auto count) { return count > 0; });
        for (std::size_t c = 0; classified && c < counts.size(); ++c) {
            std::cout << (c == 0 ? "; " : ", ") << classes[c] << " " << count_text(counts[c]);
        }
        std::cout << "\n";
    }
    for (auto const& text : remarks) {
        std::cout << text << "\n";
    }
    for (auto const& text : report.skipped) {
        std::cout << "skipped " << text << "\n";
    }
    for (auto const& file : report.files) {
        std::cout << file.path.string() << ": " << count_text(file.samples) << " samples, "
                  << bytes_text(file.bytes) << "\n";
    }
}

/// Throws  Error 75 when a signal has asked for an end
void stop_if_asked(SignalRequests const& signals) {
    if (signals.pending() != 0) {
        throw Error(ExitCode::interrupted,
                    {"the import was interrupted", "a signal asked for its end", "Import again"});
    }
}

ExitCode import_all(monitor::CommandContext& context, std::vector<std::string> const& words,
                    SignalRequests const& signals) {
    Source source;
    import::ImportOptions options;
    comm::agree(context.world, "reading the list of what to import", [&] {
        ImportArguments arguments(words);
        options = common_options(arguments);
        auto const split_by = arguments.text("--split-by");
        options.split.by_group = !split_by.empty();
        auto const maker = source_maker(words.empty() ? "" : words.front(), arguments, split_by);
        auto const& positions = arguments.positions();
        options.out = positions[2];
        if (std::error_code none; std::filesystem::equivalent(positions[1], positions[2], none)) {
            throw Error(ExitCode::usage,
                        {concat(positions[2], " is what is to be imported"),
                         "it would be replaced while it is read", "Name another place for it"});
        }
        source = maker(positions[1]);
    });
    options.before_part = [&] { stop_if_asked(signals); };
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
    auto words = invocation.arguments;
    if (take_flag(words, "--help")) {
        std::cout << import_help(words.empty() ? "" : words.front());
        return ExitCode::ok;
    }
    SignalRequests const signals;
    return monitor::run_collectively(
        invocation.argc, invocation.argv,
        [&](monitor::CommandContext& context) { return import_all(context, words, signals); });
}

} // namespace lockstep::app
