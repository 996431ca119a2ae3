#include "recompute.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <utility>
#include <vector>

namespace lockstep::program {

struct ForgottenActivations {
    std::function<void()> again;
    std::size_t count = 0;         ///< that were saved
    std::vector<at::Tensor> saved; ///< of the second time
    bool is_second_time = false;
};

namespace {

namespace autograd = torch::autograd;

/// The innermost scope of this thread.
std::shared_ptr<ForgottenActivations>& current() {
    thread_local std::shared_ptr<ForgottenActivations> innermost;
    return innermost;
}

/// For the time of a call.
class Current {
  public:
    explicit Current(std::shared_ptr<ForgottenActivations> now)
        : before_(std::exchange(current(), std::move(now))) {}
    ~Current() { current() = std::move(before_); }
    Current(Current const&) = delete;
    Current& operator=(Current const&) = delete;

  private:
    std::shared_ptr<ForgottenActivations> before_;
};

void compute_again(std::shared_ptr<ForgottenActivations> const& activations) {
    activations->is_second_time = true;
    {
        c10::AutoGradMode const with_graph(true);
        Current const scope(activations);
        std::exchange(activations->again, nullptr)();
    }
    if (activations->saved.size() != activations->count) {
        throw Error(
            ExitCode::usage,
            {"precision.gradient-checkpointing cannot run a block again",
             concat("the block saved ", amount_of(activations->count, "tensor"),
                    " when it first ran, but ", activations->saved.size(), " when it ran again"),
             "Set precision.gradient-checkpointing = false"});
    }
}

/// In the place of one tensor that autograd saves.
class Forgotten : public autograd::SavedVariableHooks {
  public:
    explicit Forgotten(std::shared_ptr<ForgottenActivations> activations)
        : activations_(std::move(activations)), second_time_(activations_->is_second_time) {}
    ~Forgotten() override {
        if (!second_time_ && place_ < activations_->saved.size()) {
            activations_->saved[place_] = at::Tensor();
        }
    }

    void call_pack_hook(at::Tensor const& tensor) override {
        if (second_time_) {
            activations_->saved.push_back(tensor.detach());
        } else {
            place_ = activations_->count++;
        }
    }
    at::Tensor call_unpack_hook() override {
        if (!activations_->is_second_time) {
            compute_again(activations_);
        }
        return activations_->saved.at(place_);
    }

  private:
    std::shared_ptr<ForgottenActivations> activations_;
    bool second_time_;
    std::size_t place_ = 0;
};

/// LibTorch's own but for the hooks, which only the engine of Python registers.
class Engine : public autograd::Engine {
  public:
    Engine() = default;
    ~Engine() override { stop(); }

    std::unique_ptr<autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
        return current() ? std::make_unique<Forgotten>(current()) : nullptr;
    }

    static autograd::Engine& instance() {
        static Engine engine;
        return engine;
    }
};

} // namespace

ActivationsForgotten::ActivationsForgotten(std::function<void()> again) {
    static bool const registered = [] {
        autograd::set_default_engine_stub(&Engine::instance);
        return true;
    }();
    static_cast<void>(registered);
    auto activations = std::make_shared<ForgottenActivations>();
    activations->again = std::move(again);
    before_ = std::exchange(current(), std::move(activations));
}

ActivationsForgotten::~ActivationsForgotten() {
    current() = std::move(before_);
}

} // namespace lockstep::program
