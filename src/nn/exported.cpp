#include "nn/exported.hpp"

#include "base/adapter_names.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/adapter.hpp"
#include "nn/quantised.hpp"
#include "nn/writes.hpp"
#include "program/metadata.hpp"
#include "program/program.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "exported_step.hpp"
#include "foreign.hpp"
#include "models.hpp"
#include "operator_libraries.hpp"
#include "sync_batch_norm.hpp"
#include "try_backward.hpp"

namespace lockstep::nn {

namespace {

std::string exported_file(config::OwnValues const& values) {
    auto file = values.text("file");
    if (file.empty()) {
        throw Error(ExitCode::usage,
                    {"model.file is not set",
                     "model.name = export needs a file with a program of torch.export",
                     "Save the model with lockstep_export.save(model, inputs, FILE), and set "
                     "model.file to that file"});
    }
    return file;
}

/// The program for training and that for evaluation, of the same tensors. A file of one program
/// holds both where no operator works differently in them. Where these two compute a loss, a third
/// one computes what the model itself returns in evaluation.
struct Programs {
    program::Program train;
    std::optional<program::Program> evaluation;
    std::optional<program::Program> outputs;

    std::vector<program::Program*> all() {
        std::vector<program::Program*> programs{&train};
        for (auto* const other : {&evaluation, &outputs}) {
            if (*other) {
                programs.push_back(&**other);
            }
        }
        return programs;
    }
};

Programs programs_of(program::Archive const& archive) {
    auto const names = archive.programs();
    auto const has = [&](char const* name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (has("train") && has("eval")) {
        program::Program const train(archive, "train", {});
        Programs found{train, program::Program(archive, "eval", train.tensors()), std::nullopt};
        if (has("outputs")) {
            found.outputs.emplace(archive, "outputs", train.tensors());
        }
        return found;
    }
    auto const file = archive.path().string();
    if (names.size() != 1) {
        throw Error(
            ExitCode::usage,
            {names.empty()
                 ? concat(file, " holds no program")
                 : concat(file, " holds ", names.size(), " programs (", joined(names, ", "), ")"),
             "the file must hold one program, or two programs with the names train and eval",
             "Save the model with lockstep_export.save(model, inputs, FILE)"});
    }
    program::Program const only(archive, names.front(), {});
    if (auto const mode = only.depends_on_mode(); !mode.empty()) {
        throw Error(
            ExitCode::usage,
            {concat(file, " holds one program for both training and evaluation"),
             concat("operator ", mode, " behaves differently in training and in evaluation"),
             "Save one program for training and one for evaluation with "
             "lockstep_export.save(model, inputs, FILE)"});
    }
    return {only, std::nullopt, std::nullopt};
}

constexpr char const* linear = "aten.linear.default";

struct AdaptedWeight {
    torch::Tensor weight;
    Adapter adapter;
};
using AdaptedWeights = std::vector<AdaptedWeight>;

/// aten.linear, with the adapter of its weight. A block that is run again gets other tensors of the
/// same memory.
void adapted_linear(AdaptedWeights const& adapted, std::vector<c10::IValue>& stack) {
    auto const given = std::exchange(stack, {});
    auto const inputs = given[0].toTensor();
    auto const weight = given[1].toTensor();
    auto const bias =
        given.size() > 2 && given[2].isTensor() ? given[2].toTensor() : torch::Tensor();
    auto const outputs = torch::linear(inputs, weight, bias);
    auto const found = std::ranges::find(adapted, weight.const_data_ptr(), [](auto const& each) {
        return each.weight.const_data_ptr();
    });
    stack.emplace_back(found == adapted.end() ? outputs : outputs + found->adapter(inputs));
}

class Exported : public Model, public HasAdapterPlaces {
  public:
    Exported(config::OwnValues const& values, Interface const& interface)
        : Exported(program::Archive(exported_file(values)), interface, values.text("compiled")) {}

    torch::Tensor forward(Fields const& inputs) override {
        auto const arguments = arguments_of(inputs);
        auto const results =
            has_loss_ || teaches_ ? run(program_of_outputs(), arguments) : run(arguments);
        if (results.size() != 1) {
            throw Error(ExitCode::usage, {concat("the model in ", file_, " returns ",
                                                 amount_of(results.size(), "tensor")),
                                          "a model must return exactly one tensor to be exported, "
                                          "pruned or used as a teacher",
                                          "Save a model whose forward method returns one tensor"});
        }
        return require_outputs(file_, results.front(), arguments, inputs.samples(), outputs_);
    }

    std::vector<torch::Tensor> results(Fields const& inputs, Fields const& targets) {
        auto const both = joined_fields(inputs, targets);
        auto const arguments = arguments_of(both);
        auto const values = run(arguments);
        std::vector<torch::Tensor> sums;
        for (auto const& value : values) {
            if (!value.isTensor() || value.toTensor().dim() != 0) {
                throw Error(
                    ExitCode::usage,
                    {concat(file_, " does not return single numbers for a batch of ",
                            forms_of(arguments)),
                     "a loss must return sums over the batch",
                     "Change the loss so that each of its results is a sum over the batch"});
            }
            sums.push_back(value.toTensor());
        }
        return sums;
    }
    bool has_loss() const { return has_loss_; }

    void settle_buffers() const override {
        if (compiled_) {
            compiled_->settle();
        }
    }

    /// Random numbers are of one generator, which threads would share.
    bool runs_on_threads() const override { return !draws_; }
    bool reads_by_operators() const override { return !compiled_->is_used(); }

    bool is_replayable() const override { return false; } // masks are of LibTorch's generator

    std::uint64_t fingerprint() const override { return hash_; }
    std::string remark() const override { return compiled_->remark(); }

    std::vector<AdapterPlace> adapter_places() override {
        constexpr std::string_view last = ".weight";
        auto const in_training = programs_.train.used_only_by(linear, 1);
        std::vector<AdapterPlace> places;
        for (auto const& [name, tensor] : programs_.train.parameters()) {
            bool const is_one = name.ends_with(last) && tensor.dim() == 2 &&
                                in_training.contains(name) &&
                                std::ranges::all_of(programs_.all(), [&, &own = name](auto* each) {
                                    return each->used_only_by(linear, 1).contains(own);
                                });
            if (is_one) {
                auto const layer = name.substr(0, name.size() - last.size());
                places.push_back({layer, tensor, [this, layer, weight = tensor](auto const& given) {
                                      add_adapter(layer, weight, given);
                                  }});
            }
        }
        return places;
    }

    bool takes_sizes_from_tensors() const override { return true; } // see program::sized
    bool takes_modes_of_layers() const override { return false; }

  private:
    Exported(program::Archive const& archive, Interface const& interface,
             std::string const& compiled)
        : file_(archive.path().string()), hash_(archive.hash()), outputs_(interface.outputs),
          has_loss_(interface.outputs == 0), programs_(programs_of(archive)) {
        auto const loss = program::read_loss_metadata(archive);
        teaches_ = interface.teaches && loss.has_value();
        require_results(loss);
        draws_ = std::ranges::any_of(programs_.all(), [](auto* each) { return each->draws(); });
        settle_writes(interface);
        try {
            adopt_tensors();
        } catch (c10::Error const& error) {
            archive.damaged(split(error.what_without_backtrace(), '\n').front());
        }
        compiled_.emplace(archive, compiled, interface, programs_.train, parameters());
        if (compiled_->is_used()) { // its bits are its own: a run continues with them alone
            hash_ = hash64(concat(hash_, " compiled"));
        }
        if (interface.recompute) {
            programs_.train.recompute();
        }
        if (interface.sync_batch_norm) {
            synchronise();
        }
        if (parameters().empty()) {
            throw Error(ExitCode::usage,
                        {concat(file_, " has no parameters"), "there is nothing to train",
                         "Export the model with its parameters"});
        }
        try_on(interface);
    }

    void add_adapter(std::string const& layer, torch::Tensor const& weight, Adapter const& given) {
        auto const module = named_modules()[layer];
        Adapter const own{module->register_parameter(std::string(adapter_a), given.a),
                          module->register_parameter(std::string(adapter_b), given.b), given.scale};
        if (adapted_->empty()) {
            for (auto* const program : programs_.all()) {
                program->replace(linear, [adapted = adapted_](std::vector<c10::IValue>& stack) {
                    adapted_linear(*adapted, stack);
                });
            }
        }
        adapted_->push_back({weight, own});
    }

    /// Parameters that forward changes become buffers (see writes.hpp), where nobody trains them.
    void settle_writes(Interface const& interface) {
        std::set<std::string> kept;
        for (auto const* const program : programs_.all()) {
            for (auto const& [tensor, by, is_parameter, is_trained] : program->writes()) {
                bool const trained = is_trained && !interface.teaches;
                if (!is_parameter || trained) {
                    refuse_write({.model = file_,
                                  .tensor = concat(is_parameter ? "parameter " : "tensor ", tensor),
                                  .by = by,
                                  .trained = trained});
                }
                kept.insert(tensor);
            }
        }
        if (!kept.empty()) {
            programs_.train.keep_as_buffers(kept);
        }
    }

    /// Statistics over all replicas' samples, where the program has batch norm.
    void synchronise() {
        programs_.train.replace("aten.batch_norm.default", [link = replica_link()](
                                                               std::vector<c10::IValue>& stack) {
            auto const given = std::exchange(stack, {});
            auto const tensor = [&](std::size_t at) {
                return given[at].isNone() ? torch::Tensor() : given[at].toTensor();
            };
            program::BatchNormTerms const norm{tensor(1), tensor(2),           tensor(3),
                                               tensor(4), given[6].toDouble(), given[7].toDouble()};
            bool const trains = given[5].toBool();
            stack.emplace_back(trains && link->sums != nullptr
                                   ? synchronised(tensor(0), norm, link).second
                                   : torch::batch_norm(tensor(0), norm.weight, norm.bias,
                                                       norm.running_mean, norm.running_var, trains,
                                                       norm.momentum, norm.epsilon,
                                                       given[8].toBool()));
        });
    }

    /// Under their names in Python, through modules of those names.
    void adopt_tensors() {
        std::map<std::string, std::shared_ptr<torch::nn::Module>> modules;
        auto const parent_of = [&](std::string const& name) -> torch::nn::Module& {
            torch::nn::Module* parent = this;
            for (auto dot = name.find('.'); dot != std::string::npos;
                 dot = name.find('.', dot + 1)) {
                auto& module = modules[name.substr(0, dot)];
                if (!module) {
                    auto const last = name.rfind('.', dot - 1);
                    auto const first = last == std::string::npos ? 0 : last + 1;
                    module = parent->register_module(name.substr(first, dot - first),
                                                     std::make_shared<torch::nn::Module>());
                }
                parent = module.get();
            }
            return *parent;
        };
        auto const last_name = [](std::string const& name) {
            return name.substr(name.rfind('.') + 1);
        };
        for (auto const& [name, tensor] : programs_.train.parameters()) {
            parent_of(name).register_parameter(last_name(name), tensor, tensor.requires_grad());
        }
        for (auto const& [name, tensor] : programs_.train.buffers()) {
            parent_of(name).register_buffer(last_name(name), tensor.requires_grad_(false));
        }
    }

    void require_results(std::optional<program::LossMetadata> const& loss) const {
        auto const count = programs_.train.outputs();
        if (has_loss_ &&
            count != loss.value().sums.size()) { // the task has looked that it is there
            throw Error(ExitCode::data, {concat(file_, " is damaged"),
                                         concat("its loss returns ", amount_of(count, "sum"),
                                                ", but the file names ", loss->sums.size()),
                                         "Save the model again with lockstep_export.save"});
        }
        if (teaches_) {
            require_program_of_outputs();
        } else if (!has_loss_ && count != 1) {
            throw Error(ExitCode::usage,
                        {concat(file_, " returns ", amount_of(count, "result")),
                         "the task needs exactly one result, a tensor",
                         loss ? "Set task.kind = export, because the file has its own loss"
                              : "Export a model whose forward method returns one tensor"});
        }
    }

    static Fields joined_fields(Fields const& inputs, Fields const& targets) {
        std::vector<Field> fields(inputs.begin(), inputs.end());
        fields.insert(fields.end(), targets.begin(), targets.end());
        return Fields(std::move(fields));
    }

    void require_program_of_outputs() const {
        if (!programs_.outputs) {
            throw Error(ExitCode::usage,
                        {concat(file_, " cannot compute outputs for samples"),
                         "the file holds only sums of the loss, because an older lockstep_export "
                         "wrote the file or the model's forward method returns no tensor",
                         "Let forward return a tensor, and save the model again under the same "
                         "name with the current lockstep_export.save; trained weights remain "
                         "valid"});
        }
    }

    /// What a model with a loss returns is only for those who evaluate it.
    program::Program& program_of_outputs() {
        require_program_of_outputs();
        if (is_training()) {
            throw Error(ExitCode::usage, {concat(file_, " was saved with a loss"),
                                          "training with this file must use the loss in the file, "
                                          "but task.kind names another loss",
                                          "Set task.kind = export"});
        }
        return *programs_.outputs;
    }

    std::vector<c10::IValue> run(std::vector<torch::Tensor> const& arguments) {
        if (is_training() && torch::GradMode::is_enabled() && compiled_->takes(arguments)) {
            programs_.train.require_fit(arguments);
            seed(programs_.train);
            auto const sums = compiled_->run(arguments);
            return {sums.begin(), sums.end()};
        }
        return run(is_training() || !programs_.evaluation ? programs_.train : *programs_.evaluation,
                   arguments);
    }

    std::vector<c10::IValue> run(program::Program& program,
                                 std::vector<torch::Tensor> const& arguments) {
        seed(program);
        if (auto* const states = hidden_link()->states; states != nullptr) {
            return program.run(arguments, [states](auto const& module, auto const& outputs) {
                states->keep(module, outputs);
            });
        }
        return program.run(arguments);
    }

    /// Exported operators draw from LibTorch's generator, in evaluation as in training.
    void seed(program::Program const& program) const {
        if (program.draws()) {
            torch::manual_seed(random_key()->value);
        }
    }

    /// What training differentiates.
    torch::Tensor try_with(Interface const& interface, std::int64_t samples) {
        auto const inputs = empty_samples(interface, samples);
        if (!has_loss_) {
            return forward(inputs).sum();
        }
        torch::Tensor total = torch::zeros({});
        for (auto const& sum : results(inputs, zeros(interface.targets, samples, torch::kCPU))) {
            total = total + sum.to(torch::kFloat32);
        }
        return total;
    }

    /// In-place operators can give a tensor other strides, and another shape.
    void require_same_buffers(std::vector<torch::Tensor> const& before) const {
        std::size_t at = 0;
        for (auto const& item : named_buffers()) {
            if (auto const& was = before[at++]; item.value().sizes() != was.sizes()) {
                throw Error(ExitCode::usage,
                            {concat(file_, " cannot be trained"),
                             concat("its forward method changes the shape of buffer ", item.key()),
                             "Let the forward method change only the values of buffers, and export "
                             "the model again"});
            }
        }
    }

    /// Runs it once in training and evaluation, so that what does not fit is told at the start.
    void try_on(Interface const& interface) {
        std::vector<torch::Tensor> values;
        for (auto const& buffer : buffers()) {
            values.push_back(buffer.clone());
        }
        auto const plain = programs_;
        for (auto* const program : programs_.all()) {
            *program = program->watched();
        }
        if (!teaches_) {
            try_backward(file_, *this, try_with(interface, 2));
        }
        eval();
        torch::NoGradGuard const no_grad;
        for (std::int64_t const samples : {1, 2}) {
            try_with(interface, samples);
        }
        programs_ = plain;
        train();
        zero_grad();
        settle_buffers(); // nothing of this trial is left for the first step
        require_same_buffers(values);
        auto const after = buffers();
        for (std::size_t at = 0; at < values.size(); ++at) {
            torch::Tensor(after[at]).copy_(values[at]);
        }
    }

    std::string file_;
    std::uint64_t hash_;
    std::int64_t outputs_;
    bool has_loss_;        ///< of the task export
    bool teaches_ = false; ///< a teacher, in a file with a loss
    bool draws_ = false;   ///< random numbers, in any of its programs
    Programs programs_;
    std::shared_ptr<AdaptedWeights> const adapted_ = std::make_shared<AdaptedWeights>();
    std::optional<ExportedStep> compiled_; ///< from the constructor on
};

double exported_parameters(config::OwnValues const& values, Interface const& /*interface*/) {
    double count = 0;
    open_operator_libraries(values);
    program::Archive const archive(exported_file(values));
    for (auto const& [name, tensor] : programs_of(archive).train.parameters()) {
        count += static_cast<double>(tensor.numel());
    }
    return count;
}

} // namespace

std::vector<torch::Tensor> results_of(Model& model, Fields const& inputs, Fields const& targets) {
    auto* const exported = dynamic_cast<Exported*>(&model);
    if (dynamic_cast<Quantised*>(&model) != nullptr) {
        throw Error(
            ExitCode::usage,
            {"an int8 model of task.kind = export cannot be evaluated",
             "the loss is a part of the exported program, and this program computes in float32",
             "Evaluate the file from which the int8 model was made, or export the int8 model for "
             "other programs with lockstep checkpoint export"});
    }
    if (exported == nullptr || !exported->has_loss()) {
        throw Error(ExitCode::usage, {"task.kind = export", "the model has no loss",
                                      "Set model.name = export, and set model.file to a file that "
                                      "was saved with a loss"});
    }
    return exported->results(inputs, targets);
}

ModelKind export_kind() {
    return {
        "export",
        "a program that was saved with torch.export",
        {{"file", "", "program of torch.export (a .pt2 file), written by lockstep_export.save"},
         {"compiled", "none",
          "whether to use the compiled step in the file: none, prefer (if the step does not fit, "
          "the graph is run) or require; the step is native code: use only files that you trust"},
         {operators_key, "",
          "shared libraries, separated by commas, whose operators (TORCH_LIBRARY) the program "
          "calls; they are native code: use only files that you trust"}},
        [](config::OwnValues const& values, Interface const& interface) {
            open_operator_libraries(values);
            return std::make_shared<Exported>(values, interface);
        },
        exported_parameters,
        true};
}

} // namespace lockstep::nn
