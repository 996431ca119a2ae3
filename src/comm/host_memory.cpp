#include "host_memory.hpp"

namespace lockstep::comm {

namespace {

constexpr std::size_t page = 4096;

/// Hands out arrays, one after the other.
class Cutter {
  public:
    explicit Cutter(std::byte* data) : data_(data) {}

    template <class T>
    T* take(std::size_t count) {
        auto* const at = reinterpret_cast<T*>(data_ + used_);
        used_ += (count * sizeof(T) + page - 1) / page * page;
        return at;
    }

  private:
    std::byte* data_;
    std::size_t used_ = 0;
};

} // namespace

HostMemory::HostMemory(Form const& form, std::byte* data, std::shared_ptr<void const> owner)
    : form_(form), owner_(std::move(owner)) {
    Cutter cut(data);
    auto const ranks = static_cast<std::size_t>(form.ranks);
    auto const size = static_cast<std::size_t>(form.size);
    slots_ = cut.take<Arrivals::Slot>(ranks);
    step_sums_ = cut.take<double>(2 * ranks * form.step_sums);
    payload_ = cut.take<std::byte>(2 * form.payload);
    squares_ = cut.take<double>(static_cast<std::size_t>(form.reduction_blocks));
    gradients_ = cut.take<float>(ranks * size);
    parameters_ = cut.take<float>((form.private_parameters ? ranks : 1) * size);
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
    auto const pages = [](std::size_t bytes) { return (bytes + page - 1) / page * page; };
    auto const of = static_cast<std::size_t>(ranks);
    auto const arena = static_cast<std::size_t>(size) * sizeof(float);
    return pages(of * sizeof(Arrivals::Slot)) + pages(2 * of * step_sums * sizeof(double)) +
           pages(2 * payload) + pages(static_cast<std::size_t>(reduction_blocks) * sizeof(double)) +
           pages(of * arena) + pages((private_parameters ? of : 1) * arena);
}

} // namespace lockstep::comm
