#include "nn/export_script.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/evaluation_mode.hpp"
#include "nn/traced.hpp"
#include "program/whole_records.hpp"

#include <torch/script.h>

#include "script.hpp"

namespace lockstep::nn {

namespace {

torch::Tensor samples(std::vector<std::int64_t> shape, std::int64_t count) {
    shape.insert(shape.begin(), count);
    return torch::rand(shape);
}

void require_one_input(Interface const& interface) {
    auto const& inputs = interface.inputs;
    bool const simple =
        inputs.empty() || (inputs.size() == 1 && !inputs.front().whole && !inputs.front().ragged);
    if (!simple) {
        throw Error(
            ExitCode::usage,
            {"this model cannot be exported as TorchScript",
             "TorchScript exports need one input of real values and samples of one length",
             "Use --format onnx, or use --format safetensors and load the weights by name"});
    }
}

void require_same(Model& model, torch::jit::Module script,
                  std::vector<std::int64_t> const& sample) {
    auto const count = differing_batch(
        model, [&](torch::Tensor const& inputs) { return script.forward({inputs}).toTensor(); },
        [&](std::int64_t wanted) { return samples(sample, wanted); });
    if (count) {
        throw Error(ExitCode::usage,
                    {"this model cannot be exported as TorchScript",
                     concat("the model and its trace give different results for a batch of ",
                            amount_of(*count, "sample"),
                            ", so its forward method depends on the batch size"),
                     "Use --format safetensors and load the weights by name"});
    }
}

constexpr char const* facts_record = "lockstep_facts.json"; // of an archive, among its extra files

} // namespace

void export_script(Model& model, Interface const& interface, std::string const& facts,
                   std::filesystem::path const& path) {
    torch::NoGradGuard const no_grad;
    EvaluationMode const evaluation(model);
    std::ostringstream out; // torch does not survive a full disk
    torch::jit::ExtraFilesMap extra;
    if (!facts.empty()) {
        extra.emplace(facts_record, facts);
    }
    if (!save_if_script(model, out, extra)) {
        require_one_input(interface);
        auto script = traced(model, samples(interface.sample_shape, 3));
        require_same(model, script, interface.sample_shape);
        script.eval();
        script.save(out, extra);
    }
    write_text_durably(path, out.str());
}

std::string facts_in_script(std::filesystem::path const& path) {
    return program::record_of(path, concat("extra/", facts_record));
}

} // namespace lockstep::nn
