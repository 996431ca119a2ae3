#include "train/gradient_sink.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace lockstep::train {

class GradientSink::Hook : public torch::autograd::PostAccumulateGradHook {
  public:
    Hook(GradientSink& sink, std::size_t index) : sink_(sink), index_(index) {}
    void operator()(torch::autograd::Variable const&) override { sink_.arrived(index_); }

  private:
    GradientSink& sink_;
    std::size_t index_;
};

GradientSink::GradientSink(nn::Model& model, Layout const& layout, comm::Partition const& partition)
    : layout_(layout), missing_in_(static_cast<std::size_t>(partition.buckets()), 0) {
    auto const named = model.named_parameters();
    int bucket = 0; // entries and buckets lie in the same order
    for (std::size_t index = 0; index < layout.entries.size(); ++index) {
        auto const& entry = layout.entries[index];
        while (partition.bucket(bucket).last <= entry.first) {
            ++bucket;
        }
        EntryState state;
        state.parameter = named[entry.name];
        state.first_bucket = state.last_bucket = bucket;
        while (partition.bucket(state.last_bucket).last < entry.first + entry.count) {
            ++state.last_bucket;
        }
        state.expected = entry.trained;
        if (entry.trained) {
            torch::autograd::impl::set_post_acc_grad_hooks(state.parameter,
                                                           std::make_unique<Hook>(*this, index));
            for (int at = state.first_bucket; at <= state.last_bucket; ++at) {
                ++missing_in_[static_cast<std::size_t>(at)];
            }
        }
        states_.push_back(std::move(state));
    }
}

GradientSink::~GradientSink() {
    for (auto const& state : states_) {
        torch::autograd::impl::set_post_acc_grad_hooks(state.parameter, nullptr);
    }
}

void GradientSink::begin(torch::Tensor target) {
    ready_ = nullptr;
    bool const same = target_.defined() && target_.const_data_ptr() == target.const_data_ptr();
    target_ = std::move(target);
    for (std::size_t index = 0; index < states_.size(); ++index) {
        auto& state = states_[index];
        auto const& entry = layout_.entries[index];
        state.written = false;
        if (!same) {
            state.view = target_.narrow(0, entry.first, entry.count).view(entry.shape);
        }
    }
}

void GradientSink::announce(BucketReady ready) {
    ready_ = std::move(ready);
    missing_ = missing_in_;
    for (auto& state : states_) {
        state.settled = false;
    }
    next_bucket_ = 0;
    announce_complete(); // buckets of nothing but frozen parameters
}

void GradientSink::arrived(std::size_t index) {
    torch::NoGradGuard const no_grad;
    auto& state = states_[index];
    if (ready_ && (state.settled || !state.expected)) {
        throw Error(ExitCode::usage,
                    {concat("parameter ", layout_.entries[index].name,
                            state.settled ? " gets its gradient twice in one backward pass"
                                          : " gets a gradient, but had none in the first step"),
                     "its bucket may already have been sent",
                     state.settled ? "Use the parameter in one checkpointed block only"
                                   : "Set communication.static-graph = false"});
    }
    auto& gradient = state.parameter.mutable_grad();
    if (state.written) {
        state.view.add_(gradient);
    } else {
        state.view.copy_(gradient);
    }
    state.written = true;
    gradient.reset(); // its memory is free for the next one
    if (ready_) {
        settle(index);
    }
}

void GradientSink::settle(std::size_t index) {
    auto& state = states_[index];
    state.settled = true;
    for (int bucket = state.first_bucket; bucket <= state.last_bucket; ++bucket) {
        --missing_[static_cast<std::size_t>(bucket)];
    }
    announce_complete();
}

void GradientSink::announce_complete() {
    while (next_bucket_ < static_cast<int>(missing_.size()) &&
           missing_[static_cast<std::size_t>(next_bucket_)] == 0) {
        ready_(next_bucket_++);
    }
}

void GradientSink::end() {
    torch::NoGradGuard const no_grad;
    for (auto& state : states_) {
        if (!state.written) {
            state.view.zero_();
        }
    }
    while (ready_ && next_bucket_ < static_cast<int>(missing_.size())) {
        ready_(next_bucket_++);
    }
    ready_ = nullptr;
}

void GradientSink::expect_unused(std::vector<char> const& unused) {
    for (std::size_t index = 0; index < states_.size(); ++index) {
        auto& state = states_[index];
        if (unused[index] != 0 && state.expected) {
            state.expected = false;
            for (int bucket = state.first_bucket; bucket <= state.last_bucket; ++bucket) {
                --missing_in_[static_cast<std::size_t>(bucket)];
            }
        }
    }
}

} // namespace lockstep::train
