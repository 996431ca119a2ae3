#include "host_memory.hpp"

#include "comm/shared_block.hpp"

#include <span>

namespace lockstep::comm {

namespace {

constexpr std::size_t page = 4096;

/// Hands out arrays of a block, one after the other; or, without a block, only counts its bytes.
class Cutter {
  public:
    explicit Cutter(std::byte* block) : block_(block) {}

    template <class T>
    void take(T*& array, std::size_t count) {
        array = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + used_);
        used_ += (count * sizeof(T) + page - 1) / page * page;
    }

    std::size_t used() const { return used_; }

  private:
    std::byte* block_;
    std::size_t used_ = 0;
};

} // namespace

HostMemory::Arrays::Arrays(Form const& form, std::byte* block) {
    Cutter cutter(block);
    auto const ranks = static_cast<std::size_t>(form.ranks);
    auto const size = static_cast<std::size_t>(form.size);
    cutter.take(slots, 2 * ranks);
    cutter.take(loans, static_cast<std::size_t>(form.buckets));
    cutter.take(step_sums, 2 * ranks * form.step_sums);
    cutter.take(payload, 2 * form.payload);
    cutter.take(squares, static_cast<std::size_t>(form.reduction_blocks));
    kept = cutter.used();
    cutter.take(parameters, (form.private_parameters ? ranks : 1) * size);
    kept = form.sparse_parameters ? kept : cutter.used();
    cutter.take(gradients, ranks * size);
    kept = form.sparse_gradients ? kept : cutter.used();
    bytes = cutter.used();
}

HostMemory::HostMemory(Form const& form, std::shared_ptr<SharedBlock const> block)
    : form_(form), block_(std::move(block)), arrays_(form, block_->data()) {}

void HostMemory::populate(float const* values, std::int64_t count) const {
    block_->populate(std::as_bytes(std::span(values, static_cast<std::size_t>(count))));
}

void HostMemory::discard(float* values, std::int64_t count) const noexcept {
    block_->discard(std::as_writable_bytes(std::span(values, static_cast<std::size_t>(count))));
}

std::vector<float*> HostMemory::destinations(int rank, std::int64_t first) const {
    std::vector<float*> all{gradients(rank) + first};
    for (int other = 0; form_.private_parameters && other < form_.ranks; ++other) {
        if (other != rank) {
            all.push_back(gradients(other) + first);
        }
    }
    return all;
}

void HostMemory::replace_parameters() const noexcept {
    block_->replace(std::as_writable_bytes(
        std::span(arrays_.parameters, static_cast<std::size_t>(form_.size))));
}

std::size_t HostMemory::Form::bytes() const {
    return Arrays(*this, nullptr).bytes;
}

std::size_t HostMemory::Form::kept_bytes() const {
    return Arrays(*this, nullptr).kept;
}

} // namespace lockstep::comm
