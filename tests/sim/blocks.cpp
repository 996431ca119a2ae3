#include "blocks.hpp"

#include <cstring>
#include <sys/mman.h>

namespace lockstep::sim {

Blocks::Blocks(Options const& options)
    : bytes_of_device_(options.bytes), bytes_pinned_(options.pinned),
      devices_("sim-devices", options.bytes * static_cast<std::size_t>(options.devices), false),
      pinned_("sim-pinned", options.pinned, true),
      next_(static_cast<std::size_t>(options.devices) + 1),
      use_(static_cast<std::size_t>(options.devices)) {
    for (auto& each : use_) {
        each.all = options.bytes;
    }
}

Blocks::~Blocks() = default;

Block* Blocks::take_cached(int device, Stream* home, std::size_t size) {
    auto const found = cached_.lower_bound({device, home, size});
    if (found == cached_.end() || found->second->device != device || found->second->home != home ||
        found->second->size > 2 * size) {
        return nullptr;
    }
    auto* const block = found->second;
    cached_.erase(found);
    return block;
}

Block* Blocks::take_new(int device, Stream* home, std::size_t size, std::size_t unit) {
    auto const index = device < 0 ? next_.size() - 1 : static_cast<std::size_t>(device);
    auto& next = next_[index];
    if (next + size > (device < 0 ? bytes_pinned_ : bytes_of_device_)) {
        return nullptr;
    }
    auto* const at = device < 0 ? pinned_.at(next) : devices_.at(index * bytes_of_device_ + next);
    next += size + unit; // a gap, so that what runs over an end is in no block
    std::memset(kernels(at), 0xFF, size);
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
                                                 .protection = PROT_READ | PROT_WRITE}));
    return all_.back().get();
}

Block* Blocks::take(int device, Stream* home, std::size_t bytes) {
    std::size_t const unit = device < 0 ? 4096 : 512; // pages can be closed
    auto const size = std::max<std::size_t>((bytes + unit - 1) / unit, 1) * unit;
    auto* block = take_cached(device, home, size);
    if (block == nullptr) {
        block = take_new(device, home, size, unit);
    }
    if (block == nullptr) {
        return nullptr;
    }
    block->used = std::max<std::size_t>(bytes, 1);
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
    cached_.insert({{block.device, block.home, block.size}, &block});
}

Block* Blocks::find(void const* data, std::size_t bytes) const {
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
                                                   bytes_of_device_)
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
