#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/text.hpp"
#include "checkpoint/safetensors.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <iostream>
#include <map>

#include "checkpoint_files.hpp"
#include "command_help.hpp"

namespace lockstep::app {

namespace {

constexpr char const* checkpoint_export_usage =
    "lockstep checkpoint export FILE|RUN OUT [--format safetensors|torchscript|hdf5] "
    "[--overwrite]";

std::string format_of(std::filesystem::path const& out) {
    std::map<std::string, std::string> const by_extension{
        {".safetensors", "safetensors"}, {".pt", "torchscript"}, {".h5", "hdf5"}};
    auto const found = by_extension.find(out.extension().string());
    if (found == by_extension.end()) {
        throw Error(ExitCode::usage,
                    {concat("no format for ", out.string()), "its name does not say it",
                     "Add --format safetensors, torchscript or hdf5"});
    }
    return found->second;
}

} // namespace

ExitCode checkpoint_export_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    auto format = take_option(arguments, "--format", "");
    bool const overwrite = take_flag(arguments, "--overwrite");
    if (arguments.size() < 2) {
        expect_arguments(arguments, 2, 2, checkpoint_export_usage);
    }
    auto const file = files_of(arguments[0], false).front();
    std::filesystem::path const out = arguments[1];
    format = format.empty() ? format_of(out) : format;
    require_free(out, overwrite);
    if (format == "torchscript") {
        arguments[0] = file.string();
        return train_side_command("checkpoint export",
                                  {arguments, invocation.argc, invocation.argv});
    }
    expect_arguments(arguments, 2, 2, checkpoint_export_usage);
    if (format == "safetensors") {
        checkpoint::write_safetensors(out, *checkpoint::open_weights(file));
    } else if (format == "hdf5") {
        checkpoint::write_model(out, *checkpoint::open_weights(file));
    } else {
        throw Error(ExitCode::usage, {concat("--format ", format), "there is no such format",
                                      "There are safetensors, torchscript and hdf5"});
    }
    std::cout << out.string() << ": the model of " << file.string() << "\n";
    return ExitCode::ok;
}

} // namespace lockstep::app
