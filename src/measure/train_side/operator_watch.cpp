#include "operator_watch.hpp"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::measure {

/// What the callbacks of all threads share.
struct OperatorWatch::State {
    explicit State(OperatorListener& told) : listener(told) {}
    OperatorListener& listener;
    /// By the first byte of each: its end and its name.
    std::map<std::uintptr_t, std::pair<std::uintptr_t, std::string>> parameters{};
    std::mutex mutex{};
    std::string parameter{};             ///< read last
    std::vector<std::string> backward{}; ///< nodes of autograd that run

    void read(c10::IValue const& value);
};

void OperatorWatch::State::read(c10::IValue const& value) {
    if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().has_storage()) {
        return;
    }
    auto const at = reinterpret_cast<std::uintptr_t>(value.toTensor().const_data_ptr());
    auto const next = parameters.upper_bound(at);
    if (next != parameters.begin() && at < std::prev(next)->second.first) {
        parameter = std::prev(next)->second.second;
    }
}

namespace {

struct Listening : c10::DebugInfoBase {
    explicit Listening(OperatorWatch::State& told) : state(told) {}
    OperatorWatch::State& state;
};

/// The gate of parameters has PRODUCER_INFO.
c10::DebugInfoKind kind() {
    return c10::DebugInfoKind::TEST_INFO;
}

OperatorWatch::State* listening() {
    auto* const info = static_cast<Listening*>(c10::ThreadLocalDebugInfo::get(kind()));
    return info == nullptr ? nullptr : &info->state;
}

bool is_node(at::RecordFunction const& function) {
    return function.scope() == at::RecordScope::BACKWARD_FUNCTION;
}

/// What an operator began with: its inputs can be asked for only then.
struct Begun : at::ObserverContext {
    explicit Begun(std::vector<c10::IValue> values) : inputs(std::move(values)) {}
    std::vector<c10::IValue> inputs;
};

/// Which inputs an operator writes to: its own, of an operator in place, or where it is told to.
std::vector<bool> written_inputs(at::RecordFunction const& function, std::size_t inputs) {
    std::vector<bool> written(inputs, false);
    auto const schema = function.operator_schema();
    for (std::size_t at = 0; schema && at < std::min(written.size(), schema->arguments().size());
         ++at) {
        auto const* const alias = schema->arguments()[at].alias_info();
        written[at] = alias != nullptr && alias->isWrite();
    }
    return written;
}

/// Not where an operator only gets memory, or looks at values in another way.
bool gives_values(at::RecordFunction const& function) {
    constexpr std::array memory{"aten::empty",  "aten::new_empty", "aten::_empty",
                                "aten::resize", "aten::set_",      "aten::as_strided_"};
    std::string_view const name = function.name();
    auto const schema = function.operator_schema();
    auto const is_view = [](c10::Argument const& returned) {
        return returned.alias_info() != nullptr && !returned.alias_info()->isWrite();
    };
    return std::ranges::none_of(memory,
                                [&](auto const* start) { return name.starts_with(start); }) &&
           !(schema && std::ranges::any_of(schema->returns(), is_view));
}

std::unique_ptr<at::ObserverContext> begin_heard(at::RecordFunction const& function) {
    if (auto* const state = listening()) {
        std::lock_guard const lock(state->mutex);
        if (is_node(function)) {
            state->backward.emplace_back(function.name());
            return nullptr;
        }
        auto const inputs = function.inputs();
        for (auto const& input : inputs) {
            state->read(input);
        }
        if (gives_values(function)) {
            return std::make_unique<Begun>(std::vector<c10::IValue>(inputs.begin(), inputs.end()));
        }
    }
    return nullptr;
}

void end_heard(at::RecordFunction const& function, at::ObserverContext* context) {
    auto* const state = listening();
    if (state == nullptr) {
        return;
    }
    std::lock_guard const lock(state->mutex);
    if (is_node(function)) {
        if (!state->backward.empty()) {
            state->backward.pop_back();
        }
        return;
    }
    auto const* const begun = static_cast<Begun const*>(context);
    if (begun == nullptr) {
        return;
    }
    at::DisableRecordFunctionGuard const quiet;
    torch::NoGradGuard const no_grad;
    auto const outputs = function.outputs();
    state->listener.heard({.name = function.name(),
                           .backward = state->backward.empty() ? "" : state->backward.back(),
                           .parameter = state->parameter,
                           .inputs = begun->inputs,
                           .outputs = {outputs.data(), outputs.size()},
                           .written = written_inputs(function, begun->inputs.size())});
}

} // namespace

OperatorWatch::OperatorWatch(OperatorListener& listener, torch::nn::Module const& model)
    : state_(std::make_unique<State>(listener)),
      guard_(kind(), std::make_shared<Listening>(*state_)) {
    for (auto const& item : model.named_parameters()) {
        auto const first = reinterpret_cast<std::uintptr_t>(item.value().const_data_ptr());
        state_->parameters[first] = {first + item.value().nbytes(), item.key()};
    }
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(begin_heard, end_heard)
            .needsInputs(true)
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OperatorWatch::~OperatorWatch() {
    at::removeCallback(handle_);
}

} // namespace lockstep::measure
