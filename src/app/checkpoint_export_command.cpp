#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/text.hpp"
#include "checkpoint/safetensors.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <iostream>
#include <map>

#include "checkpoint_files.hpp"
#include "commands.hpp"
#include "output_file.hpp"

namespace lockstep::app {

namespace {

struct ExportTold {
    std::string format;
    bool overwrite = false;
};

Options export_options(ExportTold& told) {
    return {.command = "lockstep checkpoint export",
            .positions = {"FILE|RUN OUT", 2, 2},
            .about = "Writes only the model, in a format that other programs can read. For a run, "
                     "this is the model of its newest checkpoint; for its best model, name "
                     "RUN/best.h5. torchscript traces the model and needs the data that the "
                     "model's deck names; --section.key VALUE changes a key of that deck.",
            .rows = {option::one_of("--format", {"safetensors", "torchscript", "hdf5"},
                                    "default: by the extension of OUT", told.format),
                     option::flag("--overwrite", "replace OUT if it exists", told.overwrite)},
            .deck_keys = true};
}

std::string format_of(std::filesystem::path const& out) {
    std::map<std::string, std::string> const by_extension{
        {".safetensors", "safetensors"}, {".pt", "torchscript"}, {".h5", "hdf5"}};
    auto const found = by_extension.find(out.extension().string());
    if (found == by_extension.end()) {
        throw Error(ExitCode::usage, {concat("no format for ", out.string()),
                                      "its extension is not .safetensors, .pt or .h5",
                                      "Add --format safetensors, torchscript or hdf5"});
    }
    return found->second;
}

} // namespace

ExitCode checkpoint_export_command(Invocation const& invocation) {
    ExportTold told;
    auto words = export_options(told).parse(invocation.arguments);
    auto const file = files_of(words.positions[0], false).front();
    std::filesystem::path const out = words.positions[1];
    auto const format = told.format.empty() ? format_of(out) : told.format;
    require_free(out, told.overwrite);
    if (format == "torchscript") {
        words.positions[0] = file.string();
        return train_side_command("checkpoint export",
                                  {words.all(), invocation.argc, invocation.argv});
    }
    if (!words.keys.empty()) {
        throw Error(ExitCode::usage,
                    {concat(words.keys.front(), " with --format ", format),
                     "only torchscript traces the model and needs keys of the deck",
                     "Leave them out"});
    }
    auto const weights = checkpoint::open_weights(file);
    if (weights->quantised()) {
        throw Error(ExitCode::usage, {concat(file.string(), " is a quantised model"),
                                      "its layers are int8, for lockstep evaluate alone",
                                      "Export the file that it was made from"});
    }
    if (format == "safetensors") {
        checkpoint::write_safetensors(out, *weights);
    } else {
        checkpoint::write_model(out, *weights);
    }
    std::cout << out.string() << ": the model of " << file.string() << "\n";
    return ExitCode::ok;
}

std::string checkpoint_export_help(HelpWords const&) {
    return help_of(export_options);
}

} // namespace lockstep::app
