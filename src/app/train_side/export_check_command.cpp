#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "deploy/wire.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <iostream>

#include "../train_side_options.hpp"
#include "check_export.hpp"
#include "commands.hpp"
#include "saved_deck.hpp"

namespace lockstep::app {

namespace {

/// What an exported file says of itself.
struct ExportFacts {
    std::string checkpoint;
    std::int64_t rows = 0;
};

constexpr std::size_t first_line = 4096;

std::string facts_text(std::filesystem::path const& file) {
    if (file.extension() == ".onnx") {
        return deploy::metadata_of(read_text(file), "lockstep");
    }
    File const opened = File::open_read(file);
    std::string text(std::min<std::uint64_t>(opened.size(), first_line), '\0');
    opened.read_at(0, std::as_writable_bytes(std::span(text)));
    std::string const mark = "lockstep-export ";
    auto const at = text.find(mark);
    return at == std::string::npos
               ? std::string()
               : text.substr(at + mark.size(), text.find('\n', at) - at - mark.size());
}

ExportFacts facts_in(std::filesystem::path const& file) {
    auto const json = json_or_nothing(facts_text(file));
    if (!json.is_object() || !json.contains("checkpoint") || !json["checkpoint"].is_string() ||
        !json.contains("rows") || !json["rows"].is_number_integer()) {
        auto const kind = kind_of_file(file).name;
        if (kind.ends_with("that this program exported")) {
            throw Error(ExitCode::data,
                        {concat(file.string(), " is damaged"),
                         concat("it is ", kind, ", but does not name its checkpoint"),
                         "Export the checkpoint again"});
        }
        throw Error(
            ExitCode::data,
            {concat(file.string(), " was not exported by lockstep to ONNX or C"),
             !kind.empty() ? concat("it is ", kind)
             : is_hdf5(file)
                 ? std::string("it is an HDF5 file")
                 : std::string("the file does not name the checkpoint from which it was exported"),
             "Name an .onnx or .c file written by lockstep checkpoint export"});
    }
    return {json["checkpoint"], json["rows"]};
}

} // namespace

ExitCode export_check_command(Invocation const& invocation) {
    ExportCheckTold told;
    auto words = export_check_options(told).parse(invocation.arguments);
    std::filesystem::path const file = words.positions.at(0);
    auto const facts = facts_in(file);
    checkpoint::VerifiedFile const saved_file(told.checkpoint.empty() ? facts.checkpoint
                                                                      : told.checkpoint.string());
    auto deck = saved_deck(saved_file, words.keys);
    auto const saved = train::open_saved_model(deck, saved_file, facts.rows);
    deck.data.test = told.data;
    auto const found = compare_export(file, saved, deck.data, told.samples);
    tell(saved.remarks);
    tell(found.remarks);
    bool const by_step = saved.quantised && !told.tolerance;
    auto const tolerance = told.tolerance.value_or(by_step ? found.step : 1e-5);
    auto const difference = by_step ? found.largest : found.largest_relative;
    bool const same = difference <= tolerance && std::isfinite(difference);
    std::cout << file.string() << ": " << count_text(found.samples)
              << " samples, largest difference " << found.largest << " (relative "
              << found.largest_relative << "), " << count_text(found.other_predictions) << " of "
              << count_text(found.predictions) << " predictions differ, "
              << fixed(found.seconds_per_sample * 1e3, 3) << " ms per sample on one core\n"
              << (same ? "It agrees with " : "It does not agree with ")
              << saved_file.path().string() << " within " << (by_step ? "one step of int8, " : "")
              << tolerance << "\n";
    return same ? ExitCode::ok : ExitCode::different;
}

} // namespace lockstep::app
