#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "address_space.hpp"
#include "options.hpp"
#include "runtime.hpp"
#include "shadow.hpp"

namespace lockstep::sim {

/// One allocation.
struct Block {
    /// Work that has to be done before the block is open to the host, or used again.
    struct Pending {
        std::size_t stream = 0;
        std::uint64_t epoch = 0;
        bool writes = false;
    };

    std::byte* data = nullptr;
    std::size_t size = 0;
    std::size_t used = 0; ///< as asked for
    int device = 0;       ///< -1: pinned on the host
    Stream* home = nullptr;
    std::vector<Stream*> users; ///< other streams, by record_stream
    std::vector<Pending> pending;
    Shadow shadow;
    int protection = 0; ///< of pinned memory, for the host
    /// Belongs to recorded work of this number: is living to the end of that, so that replays find
    /// it; 0: to none.
    int graph_memory = 0;
    bool in_use = true; ///< by a tensor
    /// Whether each page has memory, of addresses whose memory comes and goes. Empty: all of it is
    /// there.
    std::vector<char> pages;
};

/// The memory of all devices and the pinned one, in blocks. A freed one is used again by the stream
/// it was allocated for, for a request of at least half its size; none is split.
class Blocks {
  public:
    explicit Blocks(Options const& options);
    ~Blocks();

    /// Null: there is not so much. `device` -1: pinned.
    Block* take(int device, Stream* home, std::size_t bytes, int graph_memory = 0);
    /// May be used again by work that is recorded for the same memory.
    void reuse_in_graphs(Block& block);
    /// Returns what nobody uses of the memory, to be given back; the rest is as other blocks.
    std::vector<Block*> end_graph_memory(int number);
    /// No longer living: neither found nor used again.
    void retire(Block& block);
    /// May be used again.
    void reuse(Block& block);

    /// Addresses without memory, beside those of blocks; null: there are not so many.
    Block* reserve(int device, std::size_t bytes);
    /// Takes what memory they have, too.
    void unreserve(void* data) noexcept;
    /// Gives whole pages memory; false: there is not so much.
    bool populate(void* data, std::size_t bytes);
    void discard(Block& block, void* data, std::size_t bytes) noexcept;

    /// The living block that holds all of it, with memory for all, or null.
    Block* find(void const* data, std::size_t bytes) const;
    std::byte* kernels(void const* data) const;
    int device_of(void const* data) const;
    bool is_pinned(void const* data) const { return pinned_.holds(data); }
    /// Opens or closes a pinned block to the host, by what is pending.
    static void protect(Block& block);

    MemoryUse const& use(int device) const { return use_.at(static_cast<std::size_t>(device)); }
    void reset_peak(int device);

  private:
    using Key = std::tuple<int, Stream*, int, std::size_t>;

    Block* take_cached(int device, Stream* home, std::size_t size, int graph_memory);
    struct Pages {
        std::size_t first = 0, last = 0;
    };
    static Pages pages_of(Block const& block, void const* data, std::size_t bytes);
    Block* holding(void const* data, std::size_t bytes) const;
    Block* take_new(int device, Stream* home, std::size_t size, std::size_t unit);

    bool fills_; ///< with what no program expects
    std::size_t bytes_of_device_;
    std::size_t addresses_of_device_; ///< what is reserved lies behind the blocks
    std::size_t bytes_pinned_;
    AddressSpace devices_;
    AddressSpace pinned_;
    std::vector<std::unique_ptr<Block>> all_;
    std::map<std::byte const*, Block*> living_;
    std::multimap<Key, Block*> cached_;
    std::vector<std::size_t> next_reserved_; ///< of each device: never reserved from here
    std::vector<std::size_t> next_;          ///< of each device, and pinned: never used from here
    std::vector<MemoryUse> use_;
};

} // namespace lockstep::sim
