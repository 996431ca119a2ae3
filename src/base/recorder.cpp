#include "base/recorder.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>

namespace lockstep {

namespace {

constexpr std::size_t name_words = 4;
constexpr std::size_t max_open = 16; ///< scopes within each other

thread_local Recorder::Join const* joined_here = nullptr;

std::int64_t monotonic_ns() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

} // namespace

/// The scopes of one thread at a time.
class Recorder::Ring {
  public:
    Ring(std::string_view name, std::size_t scopes, std::int64_t skew_ns)
        : name_(name), entries_(scopes), skew_ns_(skew_ns) {}

    std::string const& name() const noexcept { return name_; }
    std::int64_t now_ns() const noexcept { return monotonic_ns() + skew_ns_; }

    bool take() noexcept { return !taken_.exchange(true, std::memory_order_acq_rel); }
    void give_back() noexcept { taken_.store(false, std::memory_order_release); }
    /// For a thread that takes it over, while no other reads names.
    void rename(std::string_view name) { name_ = name; }

    void open(std::string_view name, std::int64_t number, ScopeKind kind) noexcept {
        auto const depth = depth_.load(std::memory_order_relaxed);
        if (depth < max_open) {
            auto& entry = open_[depth];
            entry.set(name);
            entry.number.store(number, std::memory_order_release);
            entry.kind.store(kind, std::memory_order_release);
            entry.begin_ns.store(now_ns(), std::memory_order_release);
        }
        depth_.store(depth + 1, std::memory_order_release);
    }
    void close() noexcept {
        auto const depth = depth_.load(std::memory_order_relaxed) - 1;
        if (depth < max_open) {
            auto const& from = open_[depth];
            auto& entry = next();
            entry.copy_name(from);
            finish(entry, {.begin_ns = from.begin_ns.load(std::memory_order_relaxed),
                           .end_ns = now_ns(),
                           .number = from.number.load(std::memory_order_relaxed),
                           .kind = from.kind.load(std::memory_order_relaxed),
                           .name = {}});
        }
        depth_.store(depth, std::memory_order_release);
    }
    void add(std::string_view name, RecordedScope const& scope) noexcept {
        auto& entry = next();
        entry.set(name);
        finish(entry, scope);
    }

    std::uint64_t written() const noexcept { return written_.load(std::memory_order_acquire); }

    /// Returns the scopes from `first` to before `end`, as far as they are still there.
    std::vector<RecordedScope> read(std::uint64_t first, std::uint64_t end) const {
        auto const oldest = end < entries_.size() ? 0 : end - entries_.size() + 1;
        auto const begin = std::max(first, oldest);
        std::vector<RecordedScope> scopes;
        for (auto at = begin; at < end; ++at) {
            scopes.push_back(entries_[at % entries_.size()].read());
        }
        // What the writer has meanwhile come to is no scope of that time; of that which it is
        // at just now neither is.
        auto const now = written();
        auto const still = now < entries_.size() ? 0 : now - entries_.size() + 1;
        auto const lost = std::min<std::uint64_t>(still > begin ? still - begin : 0, scopes.size());
        scopes.erase(scopes.begin(), scopes.begin() + static_cast<std::ptrdiff_t>(lost));
        return scopes;
    }

    void add_open(std::vector<RecordedScope>& scopes) const {
        auto const now = now_ns();
        auto const depth = std::min<std::size_t>(depth_.load(std::memory_order_acquire), max_open);
        for (std::size_t i = 0; i < depth; ++i) {
            auto scope = open_[i].read();
            scope.is_open = true;
            scope.end_ns = std::max(now, scope.begin_ns);
            scopes.push_back(std::move(scope));
        }
    }

  private:
    /// A scope as it lies in a ring. Each word is stored after the one before, and read likewise:
    /// who sees a word of a newer scope sees how many scopes there were before it, too.
    struct Entry {
        std::atomic<std::int64_t> begin_ns{0};
        std::atomic<std::int64_t> end_ns{0};
        std::atomic<std::int64_t> number{-1};
        std::atomic<ScopeKind> kind{ScopeKind::part};
        std::array<std::atomic<std::uint64_t>, name_words> name{};

        void set(std::string_view text) noexcept {
            std::array<char, name_words * sizeof(std::uint64_t)> letters{};
            std::copy_n(text.data(), std::min(text.size(), letters.size() - 1), letters.data());
            for (std::size_t i = 0; i < name.size(); ++i) {
                std::uint64_t word = 0;
                std::memcpy(&word, letters.data() + i * sizeof(word), sizeof(word));
                name[i].store(word, std::memory_order_release);
            }
        }
        void copy_name(Entry const& other) noexcept {
            for (std::size_t i = 0; i < name.size(); ++i) {
                name[i].store(other.name[i].load(std::memory_order_relaxed),
                              std::memory_order_release);
            }
        }
        RecordedScope read() const {
            RecordedScope scope{.begin_ns = begin_ns.load(std::memory_order_acquire),
                                .end_ns = end_ns.load(std::memory_order_acquire),
                                .number = number.load(std::memory_order_acquire),
                                .kind = kind.load(std::memory_order_acquire),
                                .name = {}};
            std::array<char, name_words * sizeof(std::uint64_t)> letters{};
            for (std::size_t i = 0; i < name.size(); ++i) {
                auto const word = name[i].load(std::memory_order_acquire);
                std::memcpy(letters.data() + i * sizeof(word), &word, sizeof(word));
            }
            letters.back() = 0;
            scope.name = letters.data();
            return scope;
        }
    };

    Entry& next() noexcept {
        return entries_[written_.load(std::memory_order_relaxed) % entries_.size()];
    }
    void finish(Entry& entry, RecordedScope const& scope) noexcept {
        entry.begin_ns.store(scope.begin_ns, std::memory_order_release);
        entry.end_ns.store(scope.end_ns, std::memory_order_release);
        entry.number.store(scope.number, std::memory_order_release);
        entry.kind.store(scope.kind, std::memory_order_release);
        written_.store(written_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    std::string name_; ///< changed under the recorder's lock only
    std::vector<Entry> entries_;
    std::int64_t skew_ns_;
    std::atomic<bool> taken_{true};
    std::atomic<std::uint64_t> written_{0}; ///< scopes so far
    std::atomic<std::size_t> depth_{0};
    std::array<Entry, max_open> open_;
};

Recorder::Recorder(double skew_s) : skew_ns_(static_cast<std::int64_t>(1e9 * skew_s)) {}

Recorder::~Recorder() = default;

std::shared_ptr<Recorder> Recorder::of_this_thread() {
    return joined_here != nullptr ? joined_here->recorder_ : nullptr;
}

void Recorder::set_listener(Listener const* listener) noexcept {
    listener_.store(listener, std::memory_order_release);
}

std::int64_t Recorder::now_ns() const noexcept {
    return monotonic_ns() + skew_ns_;
}

std::shared_ptr<Recorder::Ring> Recorder::take(std::string_view name) {
    std::scoped_lock const lock(mutex_);
    for (auto const& ring : rings_) {
        if (ring->name() == name && ring->take()) {
            return ring;
        }
    }
    if (rings_.size() < max_threads) {
        auto const scopes = rings_.empty() ? main_scopes : other_scopes;
        rings_.push_back(std::make_shared<Ring>(name, scopes, skew_ns_));
        return rings_.back();
    }
    for (auto const& ring : rings_) {
        if (ring->take()) {
            ring->rename(name);
            return ring;
        }
    }
    return nullptr;
}

Recorder::Cursor Recorder::newest() const {
    std::scoped_lock const lock(mutex_);
    Cursor cursor{};
    for (std::size_t i = 0; i < rings_.size(); ++i) {
        cursor[i] = rings_[i]->written();
    }
    return cursor;
}

std::vector<RecordedThread> Recorder::read(Cursor& cursor) const {
    std::scoped_lock const lock(mutex_);
    std::vector<RecordedThread> threads;
    for (std::size_t i = 0; i < rings_.size(); ++i) {
        auto const newest = rings_[i]->written();
        threads.push_back({rings_[i]->name(), i, rings_[i]->read(cursor[i], newest)});
        cursor[i] = newest;
    }
    return threads;
}

std::vector<RecordedThread> Recorder::read_all() const {
    Cursor start{};
    auto threads = read(start);
    std::scoped_lock const lock(mutex_);
    for (auto& thread : threads) {
        rings_[thread.index]->add_open(thread.scopes);
    }
    return threads;
}

Recorder::Join::Join(std::shared_ptr<Recorder> recorder, std::string_view name)
    : recorder_(std::move(recorder)), ring_(recorder_ ? recorder_->take(name) : nullptr),
      former_(joined_here) {
    joined_here = this;
}

Recorder::Join::~Join() {
    joined_here = former_;
    if (ring_) {
        ring_->give_back();
    }
}

Scope::Scope(std::string_view name, std::int64_t number, ScopeKind kind) noexcept
    : ring_(joined_here != nullptr ? joined_here->ring_.get() : nullptr),
      listener_(ring_ != nullptr ? joined_here->recorder_->listener_.load(std::memory_order_acquire)
                                 : nullptr) {
    if (ring_ != nullptr) {
        ring_->open(name, number, kind);
    }
    if (listener_ != nullptr) {
        std::array<char, name_words * sizeof(std::uint64_t)> text{};
        std::copy_n(name.data(), std::min(name.size(), text.size() - 1), text.data());
        listener_->begin(text.data(), number);
    }
}

Scope::~Scope() {
    if (listener_ != nullptr) {
        listener_->end();
    }
    if (ring_ != nullptr) {
        ring_->close();
    }
}

void record_scope(std::string_view name, RecordedScope const& scope) noexcept {
    if (joined_here != nullptr && joined_here->ring_) {
        joined_here->ring_->add(name, scope);
    }
}

std::int64_t recorder_now_ns() noexcept {
    return joined_here != nullptr && joined_here->ring_ ? joined_here->ring_->now_ns() : 0;
}

} // namespace lockstep
