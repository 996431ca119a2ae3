#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::data {

/// Decoded chunks that several threads share: each is decoded by one of them, and the most recently
/// used ones are kept, as many as there is room for. Chunks in use stay alive after they are
/// evicted.
class ChunkCache {
  public:
    using Bytes = std::vector<std::byte>;
    using Key = std::pair<std::uint64_t, std::uint64_t>; ///< column and chunk

    explicit ChunkCache(std::size_t capacity) : capacity_(capacity) {}

    /// The chunk, made by `make` unless it is here; a thread that asks for one that another thread
    /// is making waits for it.
    ///
    /// Throws  what `make` throws, on every thread that waits for it
    std::shared_ptr<Bytes const> get(Key key, std::function<Bytes()> const& make);

    std::uint64_t made() const; ///< how often `make` was called

  private:
    struct Entry {
        std::shared_ptr<Bytes const> chunk; ///< none: being made
        std::list<Key>::iterator used;      ///< its place in `used_`, once it is made
    };

    void forget_oldest();

    std::size_t capacity_;
    mutable std::mutex mutex_;
    std::condition_variable made_one_;
    std::map<Key, Entry> entries_;
    std::list<Key> used_; ///< the latest first
    std::size_t bytes_ = 0;
    std::uint64_t made_ = 0;
};

} // namespace lockstep::data
