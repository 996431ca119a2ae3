#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What a recorded scope is.
enum class ScopeKind : std::uint64_t {
    step,
    phase,         ///< data, forward and backward, exchange, update, ...
    part,          ///< of a phase
    wait,          ///< for other ranks
    imbalance,     ///< for ranks that still compute
    communication, ///< exposed: all ranks of the host have arrived
    handed_over,   ///< a bucket, to the exchange
    bucket,        ///< summed by this thread
    travelling     ///< a bucket, while the thread does something else
};

/// A scope that has ended, or that was open when it was read.
struct RecordedScope {
    std::int64_t begin_ns = 0; ///< of Recorder::now_ns
    std::int64_t end_ns = 0;
    std::int64_t number = -1; ///< of a bucket, a step, ...; -1: none
    ScopeKind kind = ScopeKind::part;
    bool is_open = false; ///< `end_ns` is when it was read
    std::string name;
};

/// What one thread has done, in the order in which its scopes ended.
struct RecordedThread {
    std::string name;
    std::size_t index = 0; ///< the main thread has 0
    std::vector<RecordedScope> scopes;
};

/// What the threads of this process did in the last seconds, in memory of a fixed size: scopes
/// write here as they end, and any thread may read while they do. Each thread has a ring of its
/// own, of which it is the only writer: recording takes two readings of the clock and a few stores,
/// no lock and no allocation. Threads register by a Join; scopes of other threads are not recorded.
class Recorder {
  public:
    static constexpr std::size_t max_threads = 16; ///< at once; further ones are not recorded
    static constexpr std::size_t main_scopes = 8192;
    static constexpr std::size_t other_scopes = 1024;

    class Ring;
    class Join;

    /// Called on the scopes' threads when they begin and end; such as a profiler of the device's
    /// vendor. `begin` receives the name, and the number where it is not -1. Neither may throw.
    struct Listener {
        void (*begin)(char const* name, std::int64_t number) = nullptr;
        void (*end)() = nullptr;
    };

    /// `skew_s`: by how much this process's clock is wrong, on purpose.
    explicit Recorder(double skew_s = 0);
    Recorder(Recorder const&) = delete;
    Recorder& operator=(Recorder const&) = delete;
    ~Recorder();

    /// The recorder that the calling thread records to; null: none.
    static std::shared_ptr<Recorder> of_this_thread();

    /// CLOCK_MONOTONIC plus the skew.
    std::int64_t now_ns() const noexcept;

    /// Reports the scopes of all threads to `listener` from now on; it must outlive the recorder.
    /// The end of scopes that are open now is not reported.
    void set_listener(Listener const* listener) noexcept;

    /// Where a reader is in each ring.
    using Cursor = std::array<std::uint64_t, max_threads>;
    /// The newest scope of each ring.
    Cursor newest() const;
    /// All scopes that have ended since `cursor` and are still in the rings; `cursor` moves to the
    /// newest.
    std::vector<RecordedThread> read(Cursor& cursor) const;
    /// All scopes in the rings, and those that are open now.
    std::vector<RecordedThread> read_all() const;

  private:
    friend class Scope; // asks for the listener

    std::shared_ptr<Ring> take(std::string_view name);

    std::int64_t skew_ns_;
    std::atomic<Listener const*> listener_{nullptr};
    mutable std::mutex mutex_; ///< of the list, not of its rings
    std::vector<std::shared_ptr<Ring>> rings_;
};

/// The calling thread records to this recorder while the object exists. Rings are reused by threads
/// that begin later, first by those of the same name.
class Recorder::Join {
  public:
    /// `recorder` may be null.
    Join(std::shared_ptr<Recorder> recorder, std::string_view name);
    Join(Join const&) = delete;
    Join& operator=(Join const&) = delete;
    ~Join();

  private:
    std::shared_ptr<Recorder> recorder_;
    std::shared_ptr<Ring> ring_; ///< null: nothing is recorded
    Join const* former_;

    friend class Recorder;
    friend class Scope;
    friend void record_scope(std::string_view, RecordedScope const&) noexcept;
    friend std::int64_t recorder_now_ns() noexcept;
};

/// Records what the calling thread does while the object exists. Names are cut to 31 characters.
class Scope {
  public:
    explicit Scope(std::string_view name, std::int64_t number = -1,
                   ScopeKind kind = ScopeKind::part) noexcept;
    Scope(Scope const&) = delete;
    Scope& operator=(Scope const&) = delete;
    ~Scope();

  private:
    Recorder::Ring* ring_;               ///< null: nobody records
    Recorder::Listener const* listener_; ///< that has heard of it; null: nobody
};

/// Records a scope that has ended; `name` and `is_open` of `scope` are ignored.
void record_scope(std::string_view name, RecordedScope const& scope) noexcept;

/// The recorder's clock on the calling thread; 0: nobody records.
std::int64_t recorder_now_ns() noexcept;

} // namespace lockstep
