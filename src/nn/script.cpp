#include "script.hpp"

#include "base/escaped.hpp"
#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/record_calls.hpp"
#include "nn/to_device.hpp"
#include "program/whole_records.hpp"

#include <ATen/MemoryOverlap.h>
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/print_handler.h>
#include <torch/script.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "foreign.hpp"
#include "models.hpp"
#include "script_memory.hpp"
#include "script_operators.hpp"
#include "script_sizes.hpp"
#include "script_writes.hpp"

namespace lockstep::nn {

namespace {

bool holds_kind(torch::jit::Block const& block, c10::Symbol kind) {
    return std::ranges::any_of(block.nodes(), [&](torch::jit::Node const* node) {
        return node->kind() == kind ||
               std::ranges::any_of(node->blocks(), [&](torch::jit::Block const* inner) {
                   return holds_kind(*inner, kind);
               });
    });
}

/// Tensor.tolist calls no operator, so that a recording would not see that values leave a tensor.
void require_tensors(torch::jit::Module const& module) {
    auto const graph = module.get_method("forward").graph()->copy();
    torch::jit::Inline(*graph);
    if (holds_kind(*graph->block(), c10::prim::tolist)) {
        refuse_export("Tensor.tolist takes values out of a tensor",
                      "an exported graph cannot depend on the values of its inputs");
    }
}

/// The tensors of a script that have a place in its mirror.
struct Seen {
    std::set<void const*> changed; ///< parameters that are buffers, because forward changes them

    struct Place {
        void const* module = nullptr;
        std::string name;
        bool operator==(Place const&) const = default;
    };

    std::map<void const*, std::vector<std::string>> parameters; ///< with all of their names
    std::map<void const*, Place> buffers;
    std::set<void const*> shared; ///< buffers that are in two places
};

/// A module of a script as one of ours, with the same tensors under the same names. A parameter
/// that layers share has the first of its names only.
template <class Base>
class Mirror : public Base {
  public:
    Mirror(torch::jit::Module module, std::shared_ptr<Seen> const& seen,
           std::string const& path = "")
        : module_(std::move(module)), seen_(seen) {
        for (auto const& parameter : module_.named_parameters(false)) {
            auto& names = seen->parameters[parameter.value.unsafeGetTensorImpl()];
            names.push_back(path + parameter.name);
            if (names.size() == 1 &&
                seen->changed.contains(parameter.value.unsafeGetTensorImpl())) {
                this->register_buffer(parameter.name, parameter.value.requires_grad_(false));
            } else if (names.size() == 1) {
                this->register_parameter(parameter.name, parameter.value,
                                         parameter.value.requires_grad());
            }
        }
        for (auto const& buffer : module_.named_buffers(false)) {
            this->register_buffer(buffer.name, buffer.value);
            Seen::Place const place{module_._ivalue().get(), buffer.name};
            auto const* const tensor = buffer.value.unsafeGetTensorImpl();
            if (seen->buffers.try_emplace(tensor, place).first->second != place) {
                seen->shared.insert(tensor);
            }
        }
        for (auto const& child : module_.named_children()) {
            mirrors_.push_back(this->register_module(
                child.name, std::make_shared<Mirror<torch::nn::Module>>(
                                child.value, seen, concat(path, child.name, "."))));
        }
    }

    /// A script may have put other tensors in its buffers' places: ours get their values.
    void follow() const {
        auto const ours = this->named_buffers(false);
        for (auto const& buffer : module_.named_buffers(false)) {
            auto const& kept = ours[buffer.name];
            if (kept.unsafeGetTensorImpl() != buffer.value.unsafeGetTensorImpl()) {
                require_one_place(buffer.name, kept);
                require_same_form(buffer.name, kept, buffer.value);
                torch::NoGradGuard const no_grad;
                torch::Tensor(kept).copy_(buffer.value);
                torch::jit::Module(module_).setattr(buffer.name, kept);
            }
        }
        for (auto const& mirror : mirrors_) {
            mirror->follow();
        }
    }

  protected:
    /// The names of a parameter after its first.
    std::vector<std::string> later_names(std::string const& first) const {
        for (auto const& [tensor, names] : seen_->parameters) {
            if (names.front() == first) {
                return {names.begin() + 1, names.end()};
            }
        }
        return {};
    }

    torch::jit::Module module_;

  private:
    void require_one_place(std::string const& name, torch::Tensor const& kept) const {
        if (seen_->shared.contains(kept.unsafeGetTensorImpl())) {
            throw Error(ExitCode::usage,
                        {concat("the script's buffer named ", name, " must be changed in place"),
                         "the forward method puts another tensor in its place, but the buffer has "
                         "a second name in the script",
                         "Let the forward method change the values (copy_), or register a tensor "
                         "of its own under each name"});
        }
    }

    static void require_same_form(std::string const& name, torch::Tensor const& before,
                                  torch::Tensor const& now) {
        if (before.sizes() != now.sizes() || before.scalar_type() != now.scalar_type()) {
            throw Error(
                ExitCode::usage,
                {concat("the script's buffer named ", name, " must keep its shape and type"),
                 concat("the forward method changes it from ", sizes_text(before.sizes()), " ",
                        c10::toString(before.scalar_type()), " to ", sizes_text(now.sizes()), " ",
                        c10::toString(now.scalar_type())),
                 "Change the forward method so that it changes only the values of buffers"});
        }
    }

    std::shared_ptr<Seen> seen_;
    std::vector<std::shared_ptr<Mirror<torch::nn::Module>>> mirrors_;
};

/// Tensors that share memory, but are not the same tensor, would each train on their own.
void require_own_memory(torch::jit::Module const& module, std::string const& file) {
    std::vector<std::pair<std::string, torch::Tensor>> tensors;
    for (auto const& parameter : module.named_parameters()) {
        tensors.emplace_back(parameter.name, parameter.value);
    }
    for (auto const& buffer : module.named_buffers()) {
        tensors.emplace_back(buffer.name, buffer.value);
    }
    std::ranges::stable_sort(tensors, {},
                             [](auto const& each) { return each.second.const_data_ptr(); });
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        auto const& [first, a] = tensors[i - 1];
        auto const& [second, b] = tensors[i];
        auto const overlap = at::get_overlap_status(a, b);
        if (a.unsafeGetTensorImpl() != b.unsafeGetTensorImpl() &&
            (overlap == at::MemOverlapStatus::Full || overlap == at::MemOverlapStatus::Partial)) {
            throw Error(ExitCode::usage,
                        {concat(file, " cannot be trained"),
                         concat(first, " and ", second,
                                " share memory, but are different tensors, as after b.weight.data "
                                "= a.weight.data"),
                         "Share the parameter itself (b.weight = a.weight), or give each its own "
                         "memory with clone(), and save the model again"});
        }
    }
}

std::string file_of(config::OwnValues const& values) {
    auto file = values.text("file");
    if (file.empty()) {
        throw Error(ExitCode::usage,
                    {"model.file is not set", "model.name = script needs a TorchScript file",
                     "Save the model with torch.jit.script(model).save(FILE), and set model.file "
                     "to that file"});
    }
    return file;
}

/// What a script prints, on a line of its own that nobody takes for one of ours.
void print_of_script(std::string const& text) {
    auto const words = text.ends_with('\n') ? text.substr(0, text.size() - 1) : text;
    std::cout << concat("the script prints: ", escaped_line(words), "\n") << std::flush;
}

torch::jit::Module loaded(std::string const& file) {
    File::open_read(file); // its errors are clearer than torch's
    auto const kind = kind_of_file(file);
    if (!kind.script.empty()) {
        throw Error(ExitCode::data,
                    {concat(file, kind.is_cut ? " is damaged" : " is not a TorchScript module"),
                     concat("it is ", kind.name), kind.script});
    }
    program::require_whole_records(file);
    auto const refuse = [&](std::string const& why) {
        throw Error(ExitCode::data, {concat(file, " is not a TorchScript module"),
                                     is_hdf5(file) ? std::string("it is an HDF5 file")
                                     : kind.name.empty() || kind.name == "a TorchScript module"
                                         ? why
                                         : concat("it is ", kind.name),
                                     "Save the model with torch.jit.script(model).save(FILE)"});
    };
    torch::jit::Module module;
    forget_operators_with_reach();
    torch::jit::setPrintHandler(print_of_script);
    try {
        module = torch::jit::load(file, torch::kCPU); // what a file's __setstate__ says, it runs
    } catch (c10::Error const& error) {
        refuse(split(error.what_without_backtrace(), '\n').front());
    } catch (torch::jit::ErrorReport const& error) {
        if (auto const name = operator_with_reach(error.what())) {
            throw Error(ExitCode::data,
                        {concat(file, " was refused"),
                         concat("it calls ", *name,
                                ", which can reach files, other processes or foreign memory, but a "
                                "model may only compute with its tensors"),
                         "Remove this call from the model, and save the model again"});
        }
        refuse("LibTorch cannot parse its code");
    }
    fill_new_tensors(module);
    if (module.parameters().size() == 0) {
        throw Error(
            ExitCode::usage,
            {concat(file, " has no parameters"),
             "the module is frozen, or its layers have no parameters",
             "Save the module without torch.jit.freeze and torch.jit.optimize_for_inference"});
    }
    return module;
}

void require_own_layers(Interface const& interface) {
    if (interface.recompute || interface.sync_batch_norm) {
        throw Error(ExitCode::usage,
                    {concat(interface.recompute ? "precision.gradient-checkpointing"
                                                : "communication.sync-batch-norm",
                            " cannot be combined with model.name = script"),
                     "this key needs access to single layers, but a script runs as a whole",
                     "Set this key to false, or save the model with lockstep_export.save and set "
                     "model.name = export"});
    }
}

class Script : public Mirror<Model> {
  public:
    Script(config::OwnValues const& values, Interface const& interface)
        : Script(loaded(file_of(values)), file_of(values), interface) {}

    Script(torch::jit::Module const& module, std::string file, Interface const& interface)
        : Mirror(module, std::make_shared<Seen>(Seen{
                             changed_parameters(module, file, interface.teaches), {}, {}, {}})),
          file_(std::move(file)), outputs_(interface.outputs) {
        require_own_layers(interface);
        require_own_memory(module_, file_);
        if (take_sizes_from_tensors(module_)) { // its own code tells a wrong number of channels
            try_on(loaded(file_), interface);
        }
        try_on(module_, interface);
    }

    torch::Tensor forward(Fields const& inputs) override {
        if (is_recording()) {
            require_tensors(module_);
        }
        // Optimised graphs are made from what the first runs saw, and round otherwise from then on.
        torch::jit::GraphOptimizerEnabledGuard const plain(false);
        torch::manual_seed(random_key()->value); // scripts draw from torch's one generator
        return output_of(module_, arguments_of(inputs), inputs.samples());
    }

    std::vector<WeightSource> other_names(std::string const& parameter) const override {
        std::vector<WeightSource> sources;
        for (auto const& name : later_names(parameter)) {
            sources.push_back({.name = name});
        }
        return sources;
    }

    void settle_buffers() const override { follow(); }

    bool runs_on_threads() const override { return false; }
    bool reads_by_operators() const override { return false; } // some of them may be fused
    bool is_replayable() const override { return false; } // random numbers, and buffers that move
    bool takes_sizes_from_tensors() const override { return true; }
    bool takes_modes_of_layers() const override { return false; }

    std::uint64_t fingerprint() const override { return hash64(read_text(file_)); }

    void train(bool on) override {
        Model::train(on);
        module_.train(on);
    }

    void save(std::ostream& out, torch::jit::ExtraFilesMap const& extra) const {
        module_.save(out, extra);
    }

  private:
    /// Runs a copy on two empty samples, so that shapes that do not fit are told at the start.
    void try_on(torch::jit::Module const& module, Interface const& interface) const {
        constexpr std::int64_t samples = 2;
        auto const inputs = empty_samples(interface, samples);
        auto copy = module.deepcopy();
        copy.eval();
        torch::NoGradGuard const no_grad;
        torch::jit::GraphOptimizerEnabledGuard const plain(false);
        output_of(copy, arguments_of(inputs), samples);
    }

    torch::Tensor output_of(torch::jit::Module const& module,
                            std::vector<torch::Tensor> const& arguments,
                            std::int64_t samples) const {
        auto const expected = concat("[", samples, ", ", outputs_, "]");
        c10::IValue result;
        try {
            result = torch::jit::Module(module).forward({arguments.begin(), arguments.end()});
        } catch (std::bad_alloc const&) {
            throw;
        } catch (std::exception const& error) {
            auto const why = message_of(error.what());
            if (why.find("memory") != std::string::npos) {
                throw; // not the model's fault
            }
            if (auto const mixed = mixed_devices(why)) {
                throw *mixed;
            }
            throw Error(ExitCode::usage,
                        {concat(file_, " cannot take a batch of ", forms_of(arguments)), why,
                         concat("Change the forward method: let it take ", forms_of(arguments),
                                " and return ", expected)});
        }
        return require_outputs(file_, result, arguments, samples, outputs_);
    }

    /// The last line of what was said, after Python's calls and before LibTorch's own.
    static std::string message_of(std::string const& text) {
        std::string last = text;
        for (auto const& line : split(text, '\n')) {
            auto const words = trimmed(line);
            if (words.starts_with("Exception raised from") || words.starts_with("frame #")) {
                break;
            }
            last = words.empty() ? last : std::string(words);
        }
        return last;
    }

    std::string file_;
    std::int64_t outputs_;
};

double script_parameters(config::OwnValues const& values, Interface const& /*interface*/) {
    double parameters = 0;
    for (auto const& parameter : loaded(file_of(values)).parameters()) {
        parameters += static_cast<double>(parameter.numel());
    }
    return parameters;
}

} // namespace

bool save_if_script(Model const& model, std::ostream& out,
                    std::unordered_map<std::string, std::string> const& extra) {
    auto const* const script = dynamic_cast<Script const*>(&model);
    if (script != nullptr) {
        script->save(out, extra);
    }
    return script != nullptr;
}

ModelKind script_kind() {
    return {"script",
            "a TorchScript file",
            {{"file", "", "TorchScript file, written by torch.jit.script(model).save(FILE)"}},
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<Script>(values, interface);
            },
            script_parameters,
            true};
}

} // namespace lockstep::nn
