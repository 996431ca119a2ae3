// Preloaded into a run, keeps the flight recorder from recording in every second half of half a
// second, for bench/alternating.py: the scopes of whole windows of wall-clock time are alternately
// recorded or not, by all ranks of a host at once. So a run is compared with itself.

#include "base/recorder.hpp"

#include <atomic>
#include <ctime>
#include <dlfcn.h>

namespace {

constexpr std::int64_t window_ns = 500'000'000;

/// The clock that records have their times from. It is read once in some scopes: this reading must
/// not become a cost of its own, nor one of a side.
bool records_now() {
    thread_local unsigned calls = 0;
    thread_local bool records = true;
    if (calls++ % 4 == 0) {
        timespec now{};
        ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
        auto const ns = std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
        records = ns / window_ns % 2 == 0;
    }
    return records;
}

template <class Function>
Function* real(char const* symbol) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, symbol));
}

} // namespace

namespace lockstep {

Scope::Scope(std::string_view name, std::int64_t number, ScopeKind kind) noexcept : ring_(nullptr) {
    using Begin = void(Scope*, std::string_view, std::int64_t, ScopeKind);
    static auto* const begin = real<Begin>(
        "_ZN8lockstep5ScopeC1ESt17basic_string_viewIcSt11char_traitsIcEElNS_9ScopeKindE");
    if (records_now()) {
        begin(this, name, number, kind);
    }
}

Scope::~Scope() {
    static auto* const end = real<void(Scope*)>("_ZN8lockstep5ScopeD1Ev");
    if (ring_ != nullptr) {
        end(this);
    }
}

void record_scope(std::string_view name, RecordedScope const& scope) noexcept {
    using Record = void(std::string_view, RecordedScope const&);
    static auto* const record =
        real<Record>("_ZN8lockstep12record_scopeESt17basic_string_viewIcSt11"
                     "char_traitsIcEERKNS_13RecordedScopeE");
    if (records_now()) {
        record(name, scope);
    }
}

std::int64_t recorder_now_ns() noexcept {
    static auto* const now = real<std::int64_t()>("_ZN8lockstep15recorder_now_nsEv");
    return records_now() ? now() : 0;
}

} // namespace lockstep
