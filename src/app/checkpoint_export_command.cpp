#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck_source.hpp"

#include <iostream>
#include <map>

#include "checkpoint_files.hpp"
#include "commands.hpp"
#include "exported_weights.hpp"
#include "output_file.hpp"

namespace lockstep::app {

namespace {

constexpr char const* ours = "lockstep"; ///< of --names

struct ExportTold {
    std::string format;
    std::string type = "f32";
    std::string names = ours;
    std::int64_t rows = 0;
    bool overwrite = false;
};

Options export_options(ExportTold& told) {
    return {.command = "lockstep checkpoint export",
            .positions = {"FILE|RUN|DECK.ini OUT", 2, 2},
            .about =
                "Writes only the model, in a format that other programs can read. If RUN is given, "
                "the model of the run's newest checkpoint is exported; for the run's best model, "
                "name RUN/best.h5. If DECK.ini is given, the model is exported with the weights "
                "that a run of the deck begins with, to safetensors or hdf5. An export to "
                "torchscript, onnx or c runs the model, and therefore needs the data that the "
                "model's deck names. --section.key VALUE changes a key of the deck. Models in ONNX "
                "and C files take inputs as they are stored in "
                "data sets, and scale these inputs themselves.",
            .rows = {option::one_of("--format", {"safetensors", "torchscript", "onnx", "c", "hdf5"},
                                    "format of OUT; default: according to the extension of OUT",
                                    told.format),
                     option::one_of("--type", {"f32", "f16", "bf16"},
                                    "for safetensors: type of the weights; f16 and bf16 round them "
                                    "to 16 bits",
                                    told.type),
                     option::one_of("--names", {ours, "torchvision", "timm"},
                                    "for safetensors: whose names and order the tensors have; "
                                    "those of others are known of resnet and vit",
                                    told.names),
                     option::whole("--rows N",
                                   "for onnx and c, required if samples have different numbers of "
                                   "rows: the exported model takes samples of exactly N rows",
                                   told.rows),
                     option::flag("--overwrite", "replace OUT if it exists", told.overwrite)},
            .nearest_key = config::nearest_key};
}

std::string format_of(std::filesystem::path const& out) {
    std::map<std::string, std::string> const by_extension{{".safetensors", "safetensors"},
                                                          {".pt", "torchscript"},
                                                          {".onnx", "onnx"},
                                                          {".c", "c"},
                                                          {".h5", "hdf5"}};
    auto const found = by_extension.find(out.extension().string());
    if (found == by_extension.end()) {
        throw Error(ExitCode::usage,
                    {concat("no export format is known for ", out.string()),
                     "the name's extension is not .safetensors, .pt, .onnx, .c or .h5",
                     "Add --format safetensors, torchscript, onnx, c or hdf5"});
    }
    return found->second;
}

/// A C file has a header and a Fortran module beside it.
void require_c_names(std::filesystem::path const& out, std::filesystem::path const& input,
                     bool overwrite) {
    if (out.extension() != ".c") {
        throw Error(ExitCode::usage, {concat("--format c cannot write to ", out.string()),
                                      "compilers recognize C files by the extension .c",
                                      "Name a file that ends in .c"});
    }
    if (out.stem().string().find_first_of("\"\\\n\r") != std::string::npos) {
        throw Error(ExitCode::usage, {concat("--format c cannot write to ", out.string()),
                                      "C cannot include a header with such a name",
                                      "Choose a name without quotation marks and backslashes"});
    }
    for (auto const* const extension : {".h", ".f90"}) {
        auto const beside = std::filesystem::path(out).replace_extension(extension);
        require_free(beside, overwrite);
        require_other_file(beside, input);
    }
}

/// Exports the model that a run of the deck begins with.
ExitCode export_first(Words const& words, std::string const& format, ExportTold const& told,
                      Invocation const& invocation) {
    bool const of_weights = format == "safetensors" || format == "hdf5";
    if (!of_weights || told.names != ours) {
        throw Error(ExitCode::usage, {concat(of_weights ? concat("--names ", told.names)
                                                        : concat("--format ", format),
                                             " cannot be used with a deck"),
                                      "the model of a deck is not trained yet",
                                      "Train the deck, and export the directory of the run"});
    }
    std::vector<std::string> all{words.positions[0], words.positions[1], format, told.type};
    all.insert(all.end(), words.keys.begin(), words.keys.end());
    return train_side_command("checkpoint export first", {all, invocation.argc, invocation.argv});
}

} // namespace

ExitCode checkpoint_export_command(Invocation const& invocation) {
    ExportTold told;
    auto words = export_options(told).parse(invocation.arguments);
    auto const file = files_of(words.positions[0], false).front();
    std::filesystem::path const out = words.positions[1];
    auto const format = told.format.empty() ? format_of(out) : told.format;
    if (format != "safetensors" && told.type != "f32") {
        throw Error(ExitCode::usage,
                    {concat("--type ", told.type, " cannot be combined with --format ", format),
                     "only safetensors files are written with weights of 16 bits",
                     "Leave --type out, or use --format safetensors"});
    }
    if (format != "safetensors" && told.names != ours) {
        throw Error(ExitCode::usage,
                    {concat("--names ", told.names, " cannot be combined with --format ", format),
                     "only safetensors files are written with the names of other programs",
                     "Leave --names out, or use --format safetensors"});
    }
    if (format == "onnx" && out.extension() != ".onnx") {
        throw Error(ExitCode::usage, {concat("--format onnx cannot write to ", out.string()),
                                      "programs recognize ONNX files by the extension .onnx",
                                      "Name a file that ends in .onnx"});
    }
    require_free(out, told.overwrite);
    require_other_file(out, file);
    if (file.extension() == ".ini") {
        return export_first(words, format, told, invocation);
    }
    if (format == "c") {
        require_c_names(out, file, told.overwrite);
    }
    if (format == "torchscript") {
        words.positions[0] = file.string();
        return train_side_command("checkpoint export",
                                  {words.all(), invocation.argc, invocation.argv});
    }
    if (format == "onnx" || format == "c") {
        std::vector<std::string> all{file.string(), out.string(), format,
                                     std::to_string(told.rows)};
        all.insert(all.end(), words.keys.begin(), words.keys.end());
        return train_side_command("checkpoint export graph",
                                  {all, invocation.argc, invocation.argv});
    }
    if (!words.keys.empty()) {
        throw Error(ExitCode::usage,
                    {concat(words.keys.front(), " cannot be combined with --format ", format),
                     "only exports to torchscript, onnx and c run the model, so "
                     "only these formats accept keys of the deck",
                     "Leave the keys of the deck out"});
    }
    auto const weights = checkpoint::open_weights(file);
    if (weights->quantised()) {
        throw Error(
            ExitCode::usage,
            {concat(file.string(), " is a quantised model"),
             "its int8 layers can be exported only to ONNX and C",
             "Use --format onnx or c, or export the model from which this file was quantised"});
    }
    auto const deck = deck_in(weights->record());
    if (deck) {
        require_not_named(out, *deck, DeckFrom::file);
    }
    if (told.names != ours) { // the library of models knows others' names
        return train_side_command("checkpoint export named",
                                  {{file.string(), out.string(), told.type, told.names},
                                   invocation.argc,
                                   invocation.argv});
    }
    if (format == "safetensors") {
        export_weights(out, *weights, told.type);
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
