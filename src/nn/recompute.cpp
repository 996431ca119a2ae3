#include "lockstep/nn/recompute.hpp"

#include "nn/run_layers.hpp"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace lockstep::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Autocast as it was in forward, for the time of the second run.
class AutocastAgain {
  public:
    struct State {
        bool enabled = false;
        torch::ScalarType type = torch::kFloat32;
        bool cached = true;
    };
    static State now(torch::DeviceType device) {
        return {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device),
                at::autocast::is_autocast_cache_enabled()};
    }

    AutocastAgain(torch::DeviceType device, State const& state)
        : device_(device), before_(now(device)) {
        set(state);
    }
    AutocastAgain(AutocastAgain const&) = delete;
    AutocastAgain& operator=(AutocastAgain const&) = delete;
    ~AutocastAgain() { set(before_); }

  private:
    void set(State const& state) const {
        at::autocast::set_autocast_enabled(device_, state.enabled);
        at::autocast::set_autocast_dtype(device_, state.type);
        at::autocast::set_autocast_cache_enabled(state.cached);
    }

    torch::DeviceType device_;
    State before_;
};

/// What backward needs to run the block once more.
struct Memory : torch::CustomClassHolder {
    Block block;
    std::uint64_t key = 0;
    AutocastAgain::State autocast;
};

/// Gives buffers their values back: running statistics see each batch once. Not before autograd is
/// done with them, which notices every change.
class BuffersKept {
  public:
    explicit BuffersKept(std::vector<torch::Tensor> buffers) : buffers_(std::move(buffers)) {
        for (auto const& buffer : buffers_) {
            values_.push_back(buffer.clone());
        }
    }
    BuffersKept(BuffersKept const&) = delete;
    BuffersKept& operator=(BuffersKept const&) = delete;
    ~BuffersKept() {
        torch::NoGradGuard const no_grad;
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            buffers_[i].copy_(values_[i]);
        }
    }

  private:
    std::vector<torch::Tensor> buffers_;
    std::vector<torch::Tensor> values_;
};

torch::Tensor run_again(Memory const& memory, torch::Tensor const& input) {
    auto const key_now = memory.block.random_key ? memory.block.random_key->value : 0;
    if (memory.block.random_key) {
        memory.block.random_key->value = memory.key;
    }
    torch::Tensor output;
    {
        AutocastAgain const autocast(input.device().type(), memory.autocast);
        output = memory.block.forward(input);
    }
    if (memory.block.random_key) {
        memory.block.random_key->value = key_now;
    }
    return output;
}

/// The block as one node of the graph, whose inputs are the block's input and its parameters.
class Recompute : public torch::autograd::Function<Recompute> {
  public:
    static torch::Tensor forward(AutogradContext* context, torch::Tensor const& input,
                                 c10::intrusive_ptr<Memory> const& memory,
                                 at::TensorList const& /*parameters*/) {
        context->save_for_backward({input});
        context->saved_data["memory"] = torch::IValue::make_capsule(memory);
        memory->key = memory->block.random_key ? memory->block.random_key->value : 0;
        memory->autocast = AutocastAgain::now(input.device().type());
        // Autograd is off here, but without it LibTorch may choose other kernels, such as oneDNN's
        // LSTM for inference, which round differently. The graph is gone with the block's end.
        torch::AutoGradMode const with_graph(true);
        auto const own = input.detach().requires_grad_(input.requires_grad());
        return memory->block.forward(own).detach();
    }

    static variable_list backward(AutogradContext* context, variable_list gradients) {
        auto const memory =
            c10::static_intrusive_pointer_cast<Memory>(context->saved_data["memory"].toCapsule());
        auto const input =
            context->get_saved_variables()[0].detach().requires_grad_(context->needs_input_grad(0));
        torch::AutoGradMode const with_graph(true);
        BuffersKept const kept(memory->block.buffers);
        auto const output = run_again(*memory, input);
        variable_list wanted;
        if (input.requires_grad()) {
            wanted.push_back(input);
        }
        for (auto const& parameter : memory->block.parameters) {
            if (parameter.requires_grad()) {
                wanted.push_back(parameter);
            }
        }
        auto const found = torch::autograd::grad({output}, wanted, {gradients[0]},
                                                 /*retain_graph=*/false, /*create_graph=*/false,
                                                 /*allow_unused=*/true);
        variable_list result;
        std::size_t next = 0;
        result.push_back(input.requires_grad() ? found[next++] : torch::Tensor());
        result.emplace_back(); // the memory has no gradient
        for (auto const& parameter : memory->block.parameters) {
            result.push_back(parameter.requires_grad() ? found[next++] : torch::Tensor());
        }
        return result;
    }
};

} // namespace

torch::Tensor recomputed(Block block, torch::Tensor input) {
    if (!torch::GradMode::is_enabled()) {
        return block.forward(std::move(input));
    }
    auto memory = c10::make_intrusive<Memory>();
    memory->block = std::move(block);
    auto const parameters = memory->block.parameters;
    return Recompute::apply(std::move(input), memory, at::TensorList(parameters));
}

Block block_of(torch::nn::Sequential const& sequence, std::size_t first, std::size_t last,
               std::shared_ptr<RandomKey> random_key) {
    std::vector<torch::nn::AnyModule> modules(
        sequence->begin() + static_cast<std::ptrdiff_t>(first),
        sequence->begin() + static_cast<std::ptrdiff_t>(last));
    Block block;
    for (auto& module : modules) {
        for (auto const& parameter : module.ptr()->parameters()) {
            block.parameters.push_back(parameter);
        }
        for (auto const& buffer : module.ptr()->buffers()) {
            block.buffers.push_back(buffer);
        }
    }
    block.forward = [modules](torch::Tensor value) mutable {
        return run_layers(modules, std::move(value));
    };
    block.random_key = std::move(random_key);
    return block;
}

torch::Tensor forward_recomputed(torch::nn::Sequential const& sequence,
                                 std::vector<std::size_t> const& cuts,
                                 std::shared_ptr<RandomKey> const& random_key,
                                 torch::Tensor input) {
    std::size_t first = 0;
    auto const run_until = [&](std::size_t last) {
        if (first < last) {
            input = recomputed(block_of(sequence, first, last, random_key), std::move(input));
            first = last;
        }
    };
    for (auto const cut : cuts) {
        run_until(cut);
    }
    run_until(sequence->size());
    return input;
}

} // namespace lockstep::nn
