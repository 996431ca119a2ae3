#include "chunk_cache.hpp"

namespace lockstep::data {

std::shared_ptr<ChunkCache::Bytes const> ChunkCache::get(Key key,
                                                         std::function<Bytes()> const& make) {
    std::unique_lock lock(mutex_);
    while (true) {
        auto const found = entries_.find(key);
        if (found == entries_.end()) {
            break;
        }
        if (found->second.chunk) {
            used_.splice(used_.begin(), used_, found->second.used);
            return found->second.chunk;
        }
        made_one_.wait(lock);
    }
    entries_[key];
    ++made_;
    lock.unlock();
    std::shared_ptr<Bytes const> chunk;
    try {
        chunk = std::make_shared<Bytes const>(make());
    } catch (...) {
        lock.lock();
        entries_.erase(key); // whoever waits tries, and fails, by itself
        lock.unlock();
        made_one_.notify_all();
        throw;
    }
    lock.lock();
    used_.push_front(key);
    entries_[key] = {chunk, used_.begin()};
    bytes_ += chunk->size();
    forget_oldest();
    lock.unlock();
    made_one_.notify_all();
    return chunk;
}

void ChunkCache::forget_oldest() {
    while (bytes_ > capacity_ && !used_.empty()) {
        auto const oldest = entries_.find(used_.back());
        bytes_ -= oldest->second.chunk->size();
        entries_.erase(oldest);
        used_.pop_back();
    }
}

std::uint64_t ChunkCache::made() const {
    std::lock_guard const lock(mutex_);
    return made_;
}

} // namespace lockstep::data
