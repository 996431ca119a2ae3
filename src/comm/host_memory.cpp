#include "host_memory.hpp"

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

std::size_t HostMemory::Arrays::cut(Form const& form, std::byte* block) {
    Cutter cutter(block);
    auto const ranks = static_cast<std::size_t>(form.ranks);
    auto const size = static_cast<std::size_t>(form.size);
    cutter.take(slots, ranks);
    cutter.take(step_sums, 2 * ranks * form.step_sums);
    cutter.take(payload, 2 * form.payload);
    cutter.take(squares, static_cast<std::size_t>(form.reduction_blocks));
    cutter.take(gradients, ranks * size);
    cutter.take(parameters, (form.private_parameters ? ranks : 1) * size);
    return cutter.used();
}

HostMemory::HostMemory(Form const& form, std::byte* data, std::shared_ptr<void const> owner)
    : form_(form), owner_(std::move(owner)) {
    arrays_.cut(form, data);
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

std::size_t HostMemory::Form::bytes() const {
    return Arrays().cut(*this, nullptr);
}

} // namespace lockstep::comm
