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

/// The gate that is told of this thread's operators; LibTorch hands it on, as the callbacks, to the
/// threads of backward.
struct Watching : c10::DebugInfoBase {
    explicit Watching(ParameterGate& told) : gate(told) {}
    ParameterGate& gate;
};

ParameterGate* watching() {
    auto* const info =
        static_cast<Watching*>(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PRODUCER_INFO));
    return info == nullptr ? nullptr : &info->gate;
}

/// What an operator that runs has on loan.
struct Using : at::ObserverContext {
    explicit Using(std::vector<int> used) : buckets(std::move(used)) {}
    std::vector<int> buckets;
};

std::unique_ptr<at::ObserverContext> begin_operator(at::RecordFunction const& about_to_run) {
    auto* const gate = watching();
    if (gate == nullptr) {
        return nullptr;
    }
    auto const inputs = about_to_run.inputs();
    auto buckets = gate->lend({inputs.data(), inputs.size()});
    return buckets.empty() ? nullptr : std::make_unique<Using>(std::move(buckets));
}

void end_operator(at::RecordFunction const& /*has_run*/, at::ObserverContext* context) {
    auto* const gate = watching();
    if (auto const* const used = static_cast<Using*>(context); gate != nullptr && used != nullptr) {
        gate->passed(used->buckets);
    }
}

std::unique_ptr<at::ObserverContext> before_operator(at::RecordFunction const& about_to_run) {
    if (auto* const gate = watching()) {
        auto const inputs = about_to_run.inputs();
        gate->pass({inputs.data(), inputs.size()});
    }
    return nullptr;
}

} // namespace

ParameterGate::Watch::Watch(ParameterGate& gate)
    : guard_(c10::DebugInfoKind::PRODUCER_INFO, std::make_shared<Watching>(gate)) {
    gate.arrived_ = 0;
    auto callback = gate.lends() ? at::RecordFunctionCallback(begin_operator, end_operator)
                                 : at::RecordFunctionCallback(before_operator);
    handle_ =
        at::addThreadLocalCallback(callback.needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

ParameterGate::Watch::~Watch() {
    at::removeCallback(handle_);
}

ParameterGate::ParameterGate(comm::Exchange& exchange, Arena const& arena,
                             comm::Communicator const& world)
    : exchange_(exchange), world_(world), base_(arena.parameters().const_data_ptr()) {
    for (int bucket = 0; bucket < exchange.partition().buckets(); ++bucket) {
        begins_.push_back(exchange.partition().bucket(bucket).first);
    }
    if (exchange.lends()) {
        lent_.emplace(exchange);
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

std::vector<int> ParameterGate::lend(std::span<c10::IValue const> inputs) noexcept {
    std::vector<int> buckets;
    std::lock_guard const lock(mutex_);
    if (failure_) {
        return buckets;
    }
    try {
        for (auto const& value : inputs) {
            find_used(value, buckets);
        }
        std::ranges::sort(buckets);
        buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
        if (!buckets.empty()) {
            at::DisableRecordFunctionGuard const quiet; // copies to a device are operators, too
            Stopwatch const watch;
            lent_->use(buckets);
            waited_s_ += watch.seconds();
        }
        if (since_looked_.seconds() > look_every_s) {
            exchange_.serve();
            since_looked_.restart();
        }
    } catch (...) {
        failure_ = std::current_exception();
    }
    return buckets;
}

void ParameterGate::passed(std::span<int const> buckets) noexcept {
    std::lock_guard const lock(mutex_);
    lent_->release(buckets);
}

void ParameterGate::find_used(c10::IValue const& value, std::vector<int>& buckets) const {
    if (value.isTensor() && is_parameter(value.toTensor())) {
        auto const& tensor = value.toTensor();
        auto last = tensor.storage_offset();
        for (std::int64_t axis = 0; axis < tensor.dim(); ++axis) {
            last += (tensor.size(axis) - 1) * tensor.stride(axis);
        }
        for (int bucket = bucket_of(tensor.storage_offset());
             tensor.numel() > 0 && bucket <= bucket_of(last); ++bucket) {
            buckets.push_back(bucket);
        }
    } else if (value.isList()) {
        for (c10::IValue const& each : value.toListRef()) {
            find_used(each, buckets);
        }
    }
}

/// Parameters are views of the arena's memory.
bool ParameterGate::is_parameter(torch::Tensor const& tensor) const {
    return tensor.defined() && tensor.has_storage() && tensor.storage().data() == base_;
}

int ParameterGate::bucket_of(std::int64_t element) const {
    return static_cast<int>(std::ranges::upper_bound(begins_, element) - begins_.begin()) - 1;
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

/// The parameters of a tensor lie one after the other, and what has arrived is everything behind
/// some element.
int ParameterGate::needed(torch::Tensor const& tensor) const {
    return is_parameter(tensor)
               ? static_cast<int>(begins_.size()) - bucket_of(tensor.storage_offset())
               : 0;
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
    if (!lent_ && !exchange_.is_whole()) {
        wait(-1, [&] { exchange_.wait_whole(); });
    }
}

} // namespace lockstep::train
