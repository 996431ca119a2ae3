#include "gradient_sink.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "program/gradient_place.hpp"

#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace lockstep::train {

namespace {

// A device's host has launched them all in less time than it takes to launch a few alone; and what
// waits keeps memory.
constexpr std::size_t max_waiting = 64;
constexpr std::size_t max_waiting_bytes = std::size_t{16} << 20;

} // namespace

class GradientSink::Hook : public program::GradientPlace {
  public:
    Hook(GradientSink& sink, std::size_t index) : sink_(sink), index_(index) {}
    void operator()(torch::autograd::Variable const&) override { sink_.arrived(index_); }
    torch::Tensor claim() override { return sink_.claim(index_); }

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
        states_.push_back(std::move(state));
    }
    expect_trained();
}

void GradientSink::expect_trained() {
    for (std::size_t index = 0; index < states_.size(); ++index) {
        auto& state = states_[index];
        if (!layout_.entries[index].trained || state.expected) {
            continue;
        }
        state.expected = true;
        torch::autograd::impl::set_post_acc_grad_hooks(state.parameter,
                                                       std::make_unique<Hook>(*this, index));
        for (int at = state.first_bucket; at <= state.last_bucket; ++at) {
            ++missing_in_[static_cast<std::size_t>(at)];
        }
    }
}

GradientSink::~GradientSink() {
    for (auto const& state : states_) {
        torch::autograd::impl::set_post_acc_grad_hooks(state.parameter, nullptr);
    }
}

void GradientSink::begin(torch::Tensor target, Prepare prepare) {
    bool const same = target_.defined() && target_.const_data_ptr() == target.const_data_ptr();
    target_ = std::move(target);
    pass_ = {};
    pass_.written.assign(states_.size(), 0);
    pass_.claimed.assign(states_.size(), 0);
    pass_.waits.assign(states_.size(), 0);
    pass_.prepare = std::move(prepare);
    pass_.prepared.assign(missing_in_.size(), 0);
    for (std::size_t index = 0; index < states_.size(); ++index) {
        auto& state = states_[index];
        auto const& entry = layout_.entries[index];
        if (!same) {
            state.view = target_.narrow(0, entry.first, entry.count).view(entry.shape);
        }
    }
}

void GradientSink::announce(BucketsReady ready) {
    pass_.ready = std::move(ready);
    pass_.missing = missing_in_;
    pass_.settled.assign(states_.size(), 0);
    pass_.next_bucket = 0;
    announce_complete(); // buckets of nothing but frozen parameters
}

std::vector<char> GradientSink::record(BucketsReady complete,
                                       std::function<void()> const& backward) {
    auto const before = pass_;
    auto const restore = [&] { return std::exchange(pass_, before).written; };
    try {
        announce(std::move(complete));
        backward();
        flush();
    } catch (...) {
        for (auto const& state : states_) {
            state.parameter.mutable_grad().reset();
        }
        restore();
        throw;
    }
    return restore();
}

void GradientSink::replayed(int last) {
    if (pass_.ready && last > pass_.next_bucket) {
        flush();
        pass_.ready(std::exchange(pass_.next_bucket, last), last);
    }
}

torch::Tensor GradientSink::claim(std::size_t index) {
    auto const& state = states_[index];
    if (pass_.written.empty() || pass_.written[index] != 0 || pass_.claimed[index] != 0 ||
        state.view.scalar_type() != state.parameter.scalar_type()) {
        return {};
    }
    pass_.claimed[index] = 1;
    prepare(index);
    return state.view.detach();
}

void GradientSink::prepare(std::size_t index) {
    auto const& state = states_[index];
    for (int bucket = state.first_bucket; pass_.prepare && bucket <= state.last_bucket; ++bucket) {
        if (std::exchange(pass_.prepared[static_cast<std::size_t>(bucket)], 1) == 0) {
            pass_.prepare(bucket);
        }
    }
}

void GradientSink::arrived(std::size_t index) {
    torch::NoGradGuard const no_grad;
    auto& state = states_[index];
    bool const settled = pass_.ready && pass_.settled[index] != 0;
    if (pass_.ready && (settled || !state.expected)) {
        throw Error(ExitCode::usage,
                    {concat("parameter ", layout_.entries[index].name,
                            settled ? " gets its gradient twice in one backward pass"
                                    : " gets a gradient, but had none in the first step"),
                     "this gradient may already have been sent to the other ranks",
                     settled ? "Use the parameter in only one of the recomputed blocks, or set "
                               "precision.gradient-checkpointing = false"
                             : "Set communication.static-graph = false"});
    }
    bool const adds = pass_.written[index] != 0;
    auto& gradient = state.parameter.mutable_grad();
    if (adds || gradient.const_data_ptr() != state.view.const_data_ptr()) {
        put(index, adds);
    }
    pass_.written[index] = 1;
    gradient.reset(); // its memory is free for the next one
    if (pass_.ready) {
        settle(index);
    }
}

/// On a device, with others that arrive next to it: a launch for each would take the host longer
/// than backward takes the device.
void GradientSink::put(std::size_t index, bool adds) {
    prepare(index);
    auto const& state = states_[index];
    auto const& gradient = state.parameter.grad();
    auto& waiting = pass_.waiting;
    if (waiting.adds != adds || pass_.waits[index] != 0) {
        flush();
    }
    bool const alike = gradient.scalar_type() == state.view.scalar_type() &&
                       gradient.strides() == state.view.strides();
    if (gradient.is_cpu() || !alike) { // else one of another form would slow them all down
        adds ? state.view.add_(gradient) : state.view.copy_(gradient);
        return;
    }
    waiting.adds = adds;
    waiting.into.push_back(state.view);
    waiting.from.push_back(gradient);
    waiting.bytes += gradient.nbytes();
    pass_.waits[index] = 1;
    if (waiting.into.size() == max_waiting || waiting.bytes > max_waiting_bytes) {
        flush();
    }
}

void GradientSink::flush() {
    torch::NoGradGuard const no_grad;
    auto const waiting = std::exchange(pass_.waiting, {});
    if (waiting.into.empty()) {
        return;
    }
    waiting.adds ? at::_foreach_add_(waiting.into, waiting.from)
                 : at::_foreach_copy_(waiting.into, waiting.from);
    pass_.waits.assign(pass_.waits.size(), 0);
}

void GradientSink::settle(std::size_t index) {
    auto const& state = states_[index];
    pass_.settled[index] = 1;
    for (int bucket = state.first_bucket; bucket <= state.last_bucket; ++bucket) {
        --pass_.missing[static_cast<std::size_t>(bucket)];
    }
    announce_complete();
}

/// What gets no gradient is zeroed before it leaves: afterwards it may have no memory.
void GradientSink::announce_complete() {
    torch::NoGradGuard const no_grad;
    auto const buckets = static_cast<int>(pass_.missing.size());
    auto last = pass_.next_bucket;
    while (last < buckets && pass_.missing[static_cast<std::size_t>(last)] == 0) {
        ++last;
    }
    if (last == pass_.next_bucket) {
        return;
    }
    flush();
    int first = std::exchange(pass_.next_bucket, last);
    for (std::size_t index = 0; index < states_.size(); ++index) {
        auto const& state = states_[index];
        if (state.expected || state.first_bucket < first || state.first_bucket >= last ||
            used(index)) {
            continue;
        }
        if (state.first_bucket > first) {
            pass_.ready(std::exchange(first, state.first_bucket), state.first_bucket);
        }
        prepare(index);
        state.view.zero_();
        pass_.claimed[index] = 1;
    }
    pass_.ready(first, last);
}

void GradientSink::end() {
    torch::NoGradGuard const no_grad;
    flush();
    for (std::size_t index = 0; index < states_.size(); ++index) {
        if (!used(index) && pass_.claimed[index] == 0) {
            prepare(index);
            states_[index].view.zero_();
        }
    }
    replayed(static_cast<int>(missing_in_.size())); // the buckets that are left
    pass_.ready = nullptr;
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
