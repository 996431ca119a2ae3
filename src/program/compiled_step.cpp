#include "program/compiled_step.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "program/gradient_place.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>
#include <torch/version.h>
#include <zlib.h>

#include <algorithm>
#include <map>
#include <set>

#include "native_code.hpp"
#include "processor.hpp"
#include "schema.hpp"

namespace lockstep::program {

namespace {

constexpr char const* step_record = "data/lockstep/step.json";
constexpr int step_format = 5;

/// A result, by its name in the step's graph, and the program's tensor that it belongs to.
using NamedTensor = std::pair<std::string, at::Tensor>;

struct Segment {
    std::vector<std::string> inputs;
    std::vector<at::Tensor> parameters; ///< whose gradients it writes into its last inputs
    std::vector<std::string> outputs;
    std::unique_ptr<NativeCode> code;
};

[[noreturn]] void damaged_step(Archive const& archive, std::string const& why) {
    throw Error(ExitCode::data,
                {concat(archive.path().string(), " is damaged"), why,
                 "Compile the step again with lockstep_export.compile(FILE), or set "
                 "model.compiled = none"});
}

std::uint64_t sum_of(std::string_view text) {
    return ::crc32(0, reinterpret_cast<Bytef const*>(text.data()), static_cast<uInt>(text.size()));
}

std::string version_of_torch() {
    return concat(TORCH_VERSION_MAJOR, ".", TORCH_VERSION_MINOR, ".", TORCH_VERSION_PATCH);
}

} // namespace

struct StepDescription {
    std::string file;
    Tensors tensors;                          ///< inputs that are the program's
    std::map<std::string, std::size_t> batch; ///< inputs that are the batch's
    std::string loss;
    std::vector<std::string> sums;
    std::vector<NamedTensor> buffers;
    std::vector<Segment> segments;
};

namespace {

/// The tensors of one pass, by their names in the step's graph.
struct Pass : torch::CustomClassHolder {
    Pass(std::shared_ptr<StepDescription const> of, Tensors given)
        : step(std::move(of)), values(std::move(given)) {}

    std::shared_ptr<StepDescription const> step;
    Tensors values;
    std::vector<at::Tensor> gradients; ///< of the segment that ran last

    void run(Segment const& segment) {
        std::vector<at::Tensor> inputs;
        for (auto const& name : segment.inputs) {
            inputs.push_back(values.at(name));
        }
        gradients.clear();
        for (auto const& parameter : segment.parameters) {
            gradients.push_back(claim_place_of_gradient(parameter));
        }
        inputs.insert(inputs.end(), gradients.begin(), gradients.end());
        c10::AutoGradMode const no_grad(false);
        auto outputs = segment.code->run(std::move(inputs));
        if (outputs.size() != segment.outputs.size()) {
            throw Error(ExitCode::data,
                        {concat("the compiled step of ", step->file, " is damaged"),
                         concat("the step returns ", amount_of(outputs.size(), "tensor"),
                                ", but the file names ", segment.outputs.size()),
                         "Compile the step again with lockstep_export.compile(FILE)"});
        }
        for (std::size_t at = 0; at < outputs.size(); ++at) {
            values[segment.outputs[at]] = std::move(outputs[at]);
        }
    }
};

/// A segment as autograd sees it: its forward returns the loss, or for later segments a number that
/// only links it to the one before; its backward gives the gradients of its parameters. Autograd
/// accumulates them before it runs the next segment.
struct SegmentFunction : torch::autograd::Function<SegmentFunction> {
    static at::Tensor forward(torch::autograd::AutogradContext* context,
                              c10::intrusive_ptr<Pass> const& pass, std::int64_t segment,
                              at::TensorList /*parameters and link*/) {
        context->saved_data["pass"] = c10::IValue::make_capsule(pass);
        context->saved_data["segment"] = segment;
        auto const& loss = pass->values.at(pass->step->loss);
        return segment == 0 ? loss.clone() : at::zeros_like(loss);
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   torch::autograd::variable_list const& given) {
        auto const pass =
            c10::static_intrusive_pointer_cast<Pass>(context->saved_data["pass"].toCapsule());
        auto const at = static_cast<std::size_t>(context->saved_data["segment"].toInt());
        auto const& segment = pass->step->segments[at];
        if (at > 0) {
            pass->run(segment);
        }
        auto const& scale = given.front();
        bool const scaled = scale.item<double>() != 1;
        torch::autograd::variable_list results(2); // of the pass and the segment's number
        for (auto& gradient : std::exchange(pass->gradients, {})) {
            if (scaled) {
                gradient.mul_(scale);
            }
            results.push_back(
                std::move(gradient)); // held by nobody else: autograd need not copy it
        }
        if (at + 1 < pass->step->segments.size()) {
            results.push_back(scale);
        }
        return results;
    }
};

/// Reads step.json with the program's tensors.
class StepReader {
  public:
    StepReader(Archive const& archive, Program const& train)
        : archive_(archive), train_(train), json_(archive.json(step_record)) {}

    StepDescription read() const {
        require_unchanged();
        StepDescription step{archive_.path().string(), {}, {}, {}, {}, {}, {}};
        for (auto const& [name, meaning] : json_.at("inputs").items()) {
            if (meaning.is_string()) {
                step.tensors[name] = tensor(meaning.get<std::string>());
            } else {
                step.batch[name] = batch_input(meaning.get<std::size_t>());
            }
        }
        step.sums = json_.at("sums").get<std::vector<std::string>>();
        step.loss = json_.at("loss").get<std::string>();
        for (auto const& [result, name] :
             json_.at("buffers").get<std::vector<std::pair<std::string, std::string>>>()) {
            step.buffers.emplace_back(result, tensor(name));
        }
        for (auto const& each : json_.at("segments")) {
            auto const code = concat("data/lockstep/step", step.segments.size());
            for (auto const& [suffix, sum] : each.at("code").items()) {
                if (sum.get<std::uint64_t>() != sum_of(archive_.text(code + suffix))) {
                    damaged_step(archive_,
                                 concat(code, suffix, " has changed since it was compiled"));
                }
            }
            Segment segment{each.at("inputs").get<std::vector<std::string>>(),
                            {},
                            each.at("outputs").get<std::vector<std::string>>(),
                            std::make_unique<NativeCode>(archive_, code)};
            for (auto const& name : each.at("gradients").get<std::vector<std::string>>()) {
                segment.parameters.push_back(tensor(name));
            }
            step.segments.push_back(std::move(segment));
        }
        return step;
    }

  private:
    /// Native code writes through what the description names, and checks no shapes.
    void require_unchanged() const {
        auto rest = json_;
        rest.erase("checksum");
        if (json_.at("checksum").get<std::uint64_t>() != sum_of(rest.dump())) {
            damaged_step(archive_, "the description of its compiled step has changed since it was "
                                   "compiled");
        }
    }

    at::Tensor tensor(std::string const& name) const {
        auto const found = train_.tensors().find(name);
        if (found == train_.tensors().end()) {
            damaged_step(archive_,
                         concat("its compiled step has ", name, ", but its program does not"));
        }
        return found->second;
    }

    std::size_t batch_input(std::size_t number) const {
        if (number >= train_.inputs()) {
            damaged_step(archive_, concat("its compiled step takes input number ", number + 1,
                                          ", but its program has only ",
                                          amount_of(train_.inputs(), "input")));
        }
        return number;
    }

    Archive const& archive_;
    Program const& train_;
    Json json_;
};

/// Every name that a segment takes is known before it runs, and what is promised comes.
void require_whole(StepDescription const& step, Archive const& archive) {
    std::set<std::string> known;
    auto const require = [&](std::string const& name) {
        if (!known.contains(name)) {
            damaged_step(archive, concat("its compiled step does not say what ", name, " is"));
        }
    };
    for (auto const& [name, tensor] : step.tensors) {
        known.insert(name);
    }
    for (auto const& [name, number] : step.batch) {
        known.insert(name);
    }
    std::set<void const*> parameters;
    for (auto const& segment : step.segments) {
        std::ranges::for_each(segment.inputs, require);
        known.insert(segment.outputs.begin(), segment.outputs.end());
        for (auto const& parameter : segment.parameters) {
            if (!parameter.requires_grad() ||
                !parameters.insert(parameter.unsafeGetTensorImpl()).second) {
                damaged_step(archive,
                             "its compiled step has a gradient twice, or one of a tensor that "
                             "is not trained");
            }
        }
        if (&segment == &step.segments.front()) {
            require(step.loss);
            std::ranges::for_each(step.sums, require);
            std::ranges::for_each(step.buffers, require, &NamedTensor::first);
        }
    }
    if (step.segments.empty() || step.segments.back().parameters.empty()) {
        damaged_step(archive, "its compiled step, or the last segment of it, has no gradients");
    }
}

} // namespace

std::string CompiledStep::misfit(Archive const& archive) {
    if (!archive.has(step_record)) {
        return "the file has no compiled step (lockstep_export.compile(FILE) adds one)";
    }
    try {
        auto const json = archive.json(step_record);
        if (json.at("format") != step_format) {
            return concat("the file's step was compiled by another version of lockstep_export "
                          "(format ",
                          json.at("format").dump(), ", but this program reads format ", step_format,
                          ")");
        }
        if (auto const torch = json.at("torch").get<std::string>(); torch != version_of_torch()) {
            return concat("the file's step was compiled for LibTorch ", torch,
                          ", but this program has ", version_of_torch());
        }
        if (auto const wanted = json.at("processor").get<std::string>(); !processor_runs(wanted)) {
            return concat("the file's step was compiled for processors of kind ", wanted,
                          ", but this host's processor is not of that kind");
        }
        if (auto const threads = json.at("threads").get<int>(); threads != at::get_num_threads()) {
            return concat("the file's step was compiled for run.threads = ", threads, ", not ",
                          at::get_num_threads());
        }
        if (json.at("graph").get<std::uint64_t>() != sum_of(archive.text("models/train.json"))) {
            return "the file's step was compiled from another graph";
        }
        return {};
    } catch (Json::exception const& error) {
        damaged_step(archive, error.what());
    }
}

CompiledStep::CompiledStep(Archive const& archive, Program const& train) {
    try {
        auto step = std::make_shared<StepDescription>(StepReader(archive, train).read());
        require_whole(*step, archive);
        description_ = std::move(step);
    } catch (Json::exception const& error) {
        damaged_step(archive, error.what());
    }
}

CompiledStep::~CompiledStep() = default;

bool CompiledStep::takes(std::vector<at::Tensor> const& inputs) {
    return std::ranges::all_of(inputs, [](at::Tensor const& input) {
        return input.device().is_cpu() && input.dim() > 0 && input.size(0) > 1;
    });
}

std::vector<at::Tensor> CompiledStep::run(std::vector<at::Tensor> const& inputs) {
    auto const pass = c10::make_intrusive<Pass>(description_, description_->tensors);
    for (auto const& [name, number] : description_->batch) {
        pass->values[name] = inputs.at(number);
    }
    for (auto& [name, tensor] : pass->values) {
        tensor = tensor.detach().contiguous();
    }
    pass->run(description_->segments.front());

    at::Tensor link;
    for (auto at = description_->segments.size(); at-- > 0;) {
        torch::autograd::variable_list parameters = description_->segments[at].parameters;
        if (link.defined()) {
            parameters.push_back(link);
        }
        link =
            SegmentFunction::apply(pass, static_cast<std::int64_t>(at), at::TensorList(parameters));
    }
    settled_.clear();
    for (auto const& [name, buffer] : description_->buffers) {
        settled_.emplace_back(buffer, pass->values.at(name));
    }
    std::vector<at::Tensor> sums;
    for (auto const& name : description_->sums) {
        sums.push_back(name == description_->loss ? link : pass->values.at(name));
    }
    return sums;
}

void CompiledStep::settle() const {
    c10::AutoGradMode const no_grad(false);
    for (auto const& [buffer, value] : settled_) {
        at::Tensor(buffer).copy_(value);
    }
    settled_.clear();
}

} // namespace lockstep::program
