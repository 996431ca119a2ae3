#include "step/parameter_gate.hpp"

#include "base/recorder.hpp"
#include "comm/wait_scope.hpp"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>

namespace lockstep::train {

namespace {

/// Messages move only while MPI is called, and a call costs some microseconds.
constexpr double look_every_s = 100e-6;

/// As LibTorch's own callbacks, a thread's.
thread_local ParameterGate* watching = nullptr;

std::unique_ptr<at::ObserverContext> before_operator(at::RecordFunction const& about_to_run) {
    if (watching != nullptr) {
        auto const inputs = about_to_run.inputs();
        watching->pass({inputs.data(), inputs.size()});
    }
    return nullptr;
}

} // namespace

ParameterGate::Watch::Watch(ParameterGate& gate) {
    gate.arrived_ = 0;
    watching = &gate;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(before_operator)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
}

ParameterGate::Watch::~Watch() {
    at::removeCallback(handle_);
    watching = nullptr;
}

ParameterGate::ParameterGate(comm::Exchange& exchange, Arena const& arena,
                             comm::Communicator const& world)
    : exchange_(exchange), world_(world), base_(arena.parameters().const_data_ptr()) {
    for (int bucket = 0; bucket < exchange.partition().buckets(); ++bucket) {
        begins_.push_back(exchange.partition().bucket(bucket).first);
    }
}

void ParameterGate::pass(std::span<c10::IValue const> inputs) noexcept {
    if (failure_ || exchange_.is_whole()) {
        return;
    }
    try {
        int count = 0;
        for (auto const& value : inputs) {
            count = std::max(count, needed(value));
        }
        if (count > arrived_ || since_looked_.seconds() > look_every_s) {
            arrived_ = exchange_.arrived();
            since_looked_.restart();
        }
        if (count > arrived_) {
            wait(count,
                 [&] { exchange_.wait_parameters(exchange_.partition().buckets() - count); });
            arrived_ = count;
        }
    } catch (...) {
        failure_ = std::current_exception();
    }
}

/// How many buckets, counted from the last one, have to be there.
int ParameterGate::needed(c10::IValue const& value) const {
    if (value.isTensor()) {
        return needed(value.toTensor());
    }
    int count = 0;
    if (value.isList()) { // of tensors, some of which may be missing
        for (c10::IValue const& each : value.toListRef()) {
            count = std::max(count, needed(each));
        }
    }
    return count;
}

/// Parameters are views of the arena's memory. Those of a tensor lie one after the other, and what
/// has arrived is everything behind some element.
int ParameterGate::needed(torch::Tensor const& tensor) const {
    if (!tensor.defined() || !tensor.has_storage() || tensor.storage().data() != base_) {
        return 0;
    }
    auto const bucket = std::ranges::upper_bound(begins_, tensor.storage_offset()) - 1;
    return static_cast<int>(begins_.end() - bucket);
}

/// Calls `action`, which waits; `bucket` is told in timelines.
template <class Action>
void ParameterGate::wait(int bucket, Action const& action) {
    comm::WaitScope const wait(world_, comm::Wait::message);
    Scope const scope("waiting for parameters", bucket, ScopeKind::communication);
    Stopwatch const watch;
    action();
    waited_s_ += watch.seconds();
}

void ParameterGate::throw_failure() {
    if (failure_) {
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
}

void ParameterGate::close() {
    throw_failure();
    if (!exchange_.is_whole()) {
        wait(-1, [&] { exchange_.wait_whole(); });
    }
}

} // namespace lockstep::train
