#include "deploy/run_exported.hpp"

#include "base/child.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/scratch_directory.hpp"
#include "base/text.hpp"
#include "deploy/c_writer.hpp"
#include "lockstep/base/error.hpp"

#include <cstring>

namespace lockstep::deploy {

namespace {

constexpr int missing_module = 3; ///< of lockstep_export_check.py
constexpr int refused_sample = 1; ///< of the runner around a C file

/// The last line of what a child has printed.
std::string last_line(std::filesystem::path const& file) {
    auto const lines = split(read_text(file), '\n');
    for (auto at = lines.rbegin(); at != lines.rend(); ++at) {
        if (!at->empty()) {
            return *at;
        }
    }
    return {};
}

[[noreturn]] void refuse_file(std::filesystem::path const& file, std::string const& what,
                              std::string const& why,
                              std::string const& next = "Export the model again") {
    throw Error(ExitCode::data, {concat(file.string(), " ", what),
                                 why.empty() ? std::string("no reason was printed") : why, next});
}

/// The exit code of a program, which `next` says how to get where it is missing.
int ended(std::vector<std::string> const& words, std::filesystem::path const& log,
          std::string const& next) {
    try {
        return run_child(words, {"OMP_NUM_THREADS=1"}, log);
    } catch (Error const& error) {
        throw Error(error.code(), {error.text().what, error.text().why, next});
    }
}

/// Words of a command that is followed by the files and numbers of a run.
std::vector<std::string> compiled(std::filesystem::path const& file, RunInputs const& inputs,
                                  std::filesystem::path const& scratch) {
    std::vector<CInput> named;
    for (auto const& input : inputs.inputs) {
        named.push_back({input.name, input.element});
    }
    write_text_durably(scratch / "runner.c", c_runner(named, file.stem().string()));
    auto const program = (scratch / "runner").string();
    auto const log = scratch / "compiler.log";
    auto const code = ended({"cc", "-std=c99", "-O3", "-I", file.parent_path().string(), "-o",
                             program, file.string(), (scratch / "runner.c").string(), "-lm"},
                            log, "Install a C compiler that is called cc");
    if (code != 0) {
        refuse_file(file, "cannot be compiled", last_line(log),
                    "Check that cc -std=c99 compiles other programs and that the disk has space. "
                    "If both are true, export the model again");
    }
    return {program};
}

std::filesystem::path check_script() {
    auto const beside = own_program().parent_path() / "..";
    for (auto const* const place : {"share/lockstep/python", "python"}) {
        auto const script = beside / place / "lockstep_export_check.py";
        if (std::filesystem::exists(script)) {
            return script;
        }
    }
    throw Error(ExitCode::unavailable,
                {"cannot run the ONNX file", "lockstep_export_check.py is not installed",
                 "Install this program again"});
}

std::vector<float> outputs_in(std::filesystem::path const& path) {
    File const file = File::open_read(path);
    std::vector<float> values(file.size() / sizeof(float));
    file.read_at(0, std::as_writable_bytes(std::span(values)));
    return values;
}

} // namespace

RunResult run_exported(std::filesystem::path const& named, RunInputs const& inputs) {
    File::open_read(named);                             // its errors are clearer than a child's
    auto const file = std::filesystem::absolute(named); // no option of a compiler, however named
    ScratchDirectory const scratch;
    bool const onnx = file.extension() == ".onnx";
    auto words = onnx ? std::vector<std::string>{"python3", check_script().string(), file.string()}
                      : compiled(file, inputs, scratch.path());
    File const samples = File::create(scratch.path() / "inputs");
    std::uint64_t at = 0;
    for (auto const& input : inputs.inputs) {
        samples.write_at(at, input.samples);
        at += input.samples.size();
    }
    for (auto const* const name : {"inputs", "outputs"}) {
        words.push_back((scratch.path() / name).string());
    }
    words.push_back(std::to_string(inputs.count));
    words.push_back(std::to_string(inputs.times));
    auto const log = scratch.path() / "run.log";
    std::string const next =
        "Install onnxruntime for the python3 on your PATH (pip install onnxruntime)";
    auto const code = ended(words, log, next);
    if (onnx && code == missing_module) {
        throw Error(ExitCode::unavailable, {"cannot run the ONNX file", last_line(log), next});
    }
    if (code != 0) {
        auto const last = last_line(log);
        refuse_file(
            file, "cannot be run",
            code == refused_sample && !onnx
                ? std::string("a whole number among the inputs is out of range")
                : concat(last.empty() ? "no reason was printed" : last, " (exit code ", code, ")"));
    }
    auto const seconds = number_of<double>(last_line(log));
    return {outputs_in(scratch.path() / "outputs"), seconds.value_or(0)};
}

} // namespace lockstep::deploy
