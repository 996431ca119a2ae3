#include "blocks.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <utility>

namespace lockstep::sim {

Blocks::Blocks(Options const& options)
    : fills_(options.kernels), bytes_of_device_(options.bytes),
      addresses_of_device_(4 * options.bytes), bytes_pinned_(options.pinned),
      devices_("sim-devices", addresses_of_device_ * static_cast<std::size_t>(options.devices),
               false),
      pinned_("sim-pinned", options.pinned, true),
      next_reserved_(static_cast<std::size_t>(options.devices), options.bytes),
      next_(static_cast<std::size_t>(options.devices) + 1),
      use_(static_cast<std::size_t>(options.devices)) {
    for (auto& each : use_) {
        each.all = options.bytes;
    }
}

Blocks::~Blocks() = default;

Block* Blocks::take_cached(int device, Stream* home, std::size_t size, int graph_memory) {
    auto const found = cached_.lower_bound({device, home, graph_memory, size});
    if (found == cached_.end() || found->second->device != device || found->second->home != home ||
        found->second->graph_memory != graph_memory || found->second->size > 2 * size) {
        return nullptr;
    }
    auto* const block = found->second;
    cached_.erase(found);
    return block;
}

Block* Blocks::take_new(int device, Stream* home, std::size_t size, std::size_t unit) {
    auto const index = device < 0 ? next_.size() - 1 : static_cast<std::size_t>(device);
    auto& next = next_[index];
    if (next + size > (device < 0 ? bytes_pinned_ : bytes_of_device_) ||
        (device >= 0 && use_[index].reserved + size > bytes_of_device_)) {
        return nullptr;
    }
    auto* const at =
        device < 0 ? pinned_.at(next) : devices_.at(index * addresses_of_device_ + next);
    next += size + unit; // a gap, so that what runs over an end is in no block
    if (fills_) {
        std::memset(kernels(at), 0xFF, size);
    }
    if (device >= 0) {
        use_[index].reserved += size;
    }
    all_.push_back(std::make_unique<Block>(Block{.data = at,
                                                 .size = size,
                                                 .device = device,
                                                 .home = home,
                                                 .users = {},
                                                 .pending = {},
                                                 .shadow = Shadow(size),
                                                 .protection = PROT_READ | PROT_WRITE,
                                                 .pages = {}}));
    return all_.back().get();
}

Block* Blocks::take(int device, Stream* home, std::size_t bytes, int graph_memory) {
    std::size_t const unit = device < 0 ? 4096 : 512; // pages can be closed
    auto const size = std::max<std::size_t>((bytes + unit - 1) / unit, 1) * unit;
    auto* block = take_cached(device, home, size, graph_memory);
    if (block != nullptr && graph_memory != 0) {
        block->in_use = true;
        return block; // as it was: earlier work uses all of it
    }
    if (block == nullptr) {
        block = take_new(device, home, size, unit);
    }
    if (block == nullptr) {
        return nullptr;
    }
    block->graph_memory = graph_memory;
    block->in_use = true;
    block->used = graph_memory != 0 ? block->size : std::max<std::size_t>(bytes, 1);
    living_[block->data] = block;
    if (device >= 0) {
        auto& use = use_[static_cast<std::size_t>(device)];
        use.used += block->size;
        use.peak = std::max(use.peak, use.used);
    }
    return block;
}

void Blocks::retire(Block& block) {
    living_.erase(block.data);
    if (block.device >= 0) {
        use_[static_cast<std::size_t>(block.device)].used -= block.size;
    }
}

void Blocks::reuse(Block& block) {
    block.users.clear();
    block.pending.clear();
    protect(block);
    cached_.insert({{block.device, block.home, block.graph_memory, block.size}, &block});
}

void Blocks::reuse_in_graphs(Block& block) {
    block.in_use = false;
    cached_.insert({{block.device, block.home, block.graph_memory, block.size}, &block});
}

std::vector<Block*> Blocks::end_graph_memory(int number) {
    std::erase_if(cached_, [&](auto const& each) { return each.second->graph_memory == number; });
    std::vector<Block*> unused;
    for (auto const& block : all_) {
        if (block->graph_memory == number) {
            block->graph_memory = 0;
            if (!block->in_use) {
                unused.push_back(block.get());
            }
        }
    }
    return unused;
}

Block* Blocks::reserve(int device, std::size_t bytes) {
    auto const index = static_cast<std::size_t>(device);
    auto& next = next_reserved_[index];
    auto const pages = (bytes + page_bytes - 1) / page_bytes;
    next = (next + page_bytes - 1) / page_bytes * page_bytes;
    if (next + pages * page_bytes > addresses_of_device_) {
        return nullptr;
    }
    auto* const at = devices_.at(index * addresses_of_device_ + next);
    next += (pages + 1) * page_bytes; // a gap
    all_.push_back(std::make_unique<Block>(Block{.data = at,
                                                 .size = pages * page_bytes,
                                                 .used = pages * page_bytes,
                                                 .device = device,
                                                 .users = {},
                                                 .pending = {},
                                                 .shadow = Shadow(pages * page_bytes),
                                                 .pages = std::vector<char>(pages, 0)}));
    living_[at] = all_.back().get();
    return all_.back().get();
}

void Blocks::unreserve(void* data) noexcept {
    auto& block = *living_.at(static_cast<std::byte*>(data));
    discard(block, block.data, block.size);
    living_.erase(block.data);
}

Blocks::Pages Blocks::pages_of(Block const& block, void const* data, std::size_t bytes) {
    auto const first = static_cast<std::size_t>(static_cast<std::byte const*>(data) - block.data);
    return {first / page_bytes, (first + bytes + page_bytes - 1) / page_bytes};
}

bool Blocks::populate(void* data, std::size_t bytes) {
    auto& block = *holding(data, bytes);
    auto& use = use_[static_cast<std::size_t>(block.device)];
    auto const [first, last] = pages_of(block, data, bytes);
    if (use.reserved + (last - first) * page_bytes > use.all) {
        return false;
    }
    for (auto page = first; page < last; ++page) {
        if (block.pages[page] != 0) {
            throw std::logic_error("sim: pages come that are there");
        }
        block.pages[page] = 1;
        use.used += page_bytes;
        use.reserved += page_bytes;
    }
    use.peak = std::max(use.peak, use.used);
    if (fills_) {
        std::memset(kernels(data), 0xFF, bytes);
    }
    return true;
}

void Blocks::discard(Block& block, void* data, std::size_t bytes) noexcept {
    auto& use = use_[static_cast<std::size_t>(block.device)];
    auto const [first, last] = pages_of(block, data, bytes);
    for (auto page = first; page < last; ++page) {
        if (std::exchange(block.pages[page], 0) != 0) {
            use.used -= page_bytes;
            use.reserved -= page_bytes;
        }
    }
}

Block* Blocks::find(void const* data, std::size_t bytes) const {
    auto* const block = holding(data, bytes);
    if (block == nullptr || block->pages.empty()) {
        return block;
    }
    auto const [first, last] = pages_of(*block, data, bytes);
    for (auto page = first; page < last; ++page) {
        if (block->pages[page] == 0) {
            return nullptr;
        }
    }
    return block;
}

Block* Blocks::holding(void const* data, std::size_t bytes) const {
    auto const* const at = static_cast<std::byte const*>(data);
    auto const found = living_.upper_bound(at);
    if (found == living_.begin()) {
        return nullptr;
    }
    auto* const block = std::prev(found)->second;
    return at + bytes <= block->data + block->used ? block : nullptr;
}

std::byte* Blocks::kernels(void const* data) const {
    return pinned_.holds(data) ? pinned_.kernels(data) : devices_.kernels(data);
}

int Blocks::device_of(void const* data) const {
    return devices_.holds(data) ? static_cast<int>(static_cast<std::size_t>(devices_.offset(data)) /
                                                   addresses_of_device_)
                                : -1;
}

void Blocks::protect(Block& block) {
    if (block.device >= 0) {
        return; // closed for ever
    }
    int wanted = PROT_READ | PROT_WRITE;
    for (auto const& each : block.pending) {
        wanted &= each.writes ? PROT_NONE : PROT_READ;
    }
    if (wanted != block.protection) {
        block.protection = wanted;
        ::mprotect(block.data, block.size, wanted);
    }
}

void Blocks::reset_peak(int device) {
    auto& use = use_.at(static_cast<std::size_t>(device));
    use.peak = use.used;
}

} // namespace lockstep::sim
