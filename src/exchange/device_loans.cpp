#include "device_loans.hpp"

#include "arena/arena.hpp"
#include "device/device_elements.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>

#include "foreign_parts.hpp"

namespace lockstep::train {

namespace {

/// Buckets that were given back, and keep their memory until their operators are done: with one,
/// the device has work while the host waits for the operators before them.
constexpr std::size_t max_leaving = 1;

} // namespace

DeviceLoans::DeviceLoans(comm::Exchange& host, torch::Device device)
    : host_(host), device_(device), streams_(device.type()),
      copies_(streams_.getStreamFromGlobalPool(device)),
      host_parameters_(borrowed(host.parameters(), host.partition().size(), torch::kCPU)),
      array_(device, host.partition().size()),
      loans_(static_cast<std::size_t>(host.partition().buckets())) {
    for (auto const& own : host.partition().owned(host.rank())) {
        array_.populate(own);
        slice(array_.values(), own).zero_();
    }
    std::int64_t max = 0;
    for (int index = 0; index < host.partition().buckets(); ++index) {
        max = std::max(max, host.partition().bucket(index).count());
    }
    for (auto& room : rooms_) {
        room.pinned =
            torch::empty({max}, torch::TensorOptions(torch::kFloat32).pinned_memory(true));
    }
}

std::array<Range, 2> DeviceLoans::foreign(int index) const {
    return foreign_parts(host_.partition(), index, host_.rank());
}

c10::Event DeviceLoans::event_of(c10::Stream stream) const {
    c10::Event event(device_.type());
    event.record(stream);
    return event;
}

/// Operators run on after an error here, since LibTorch lets none out of what it tells of them.
void DeviceLoans::lend(int index) {
    try {
        auto& each = loan(index);
        if (each.phase == Phase::leaving) {
            recall(index);
        } else if (each.phase == Phase::absent) {
            fetch(index);
        }
        join(each);
    } catch (...) {
        failure_ = std::current_exception();
        throw;
    }
}

void DeviceLoans::require() const {
    if (failure_) {
        std::rethrow_exception(failure_);
    }
}

void DeviceLoans::ask(int index) {
    if (loan(index).phase != Phase::absent) {
        return;
    }
    if (host_.lends()) { // other hosts have to answer first
        host_.ask_for(index);
        return;
    }
    fetch(index);
}

void DeviceLoans::fetch(int index) {
    torch::NoGradGuard const no_grad;
    c10::DeviceGuard const guard(device_);
    if (host_.lends()) {
        host_.lend(index);
    }
    auto const pinned = free_room();
    c10::StreamGuard const beside(copies_);
    auto const each_part = [&](auto const& work) {
        std::int64_t at = 0;
        for (auto const& range : foreign(index)) {
            work(range, pinned.narrow(0, at, range.count()));
            at += range.count();
        }
    };
    // All that the host writes comes first: a copy that is under way reads the same room.
    each_part([&](Range const& range, torch::Tensor const& part) {
        part.copy_(slice(host_parameters_, range));
    });
    each_part([&](Range const& range, torch::Tensor const& part) {
        array_.populate(range);
        slice(array_.values(), range).copy_(part, /*non_blocking=*/true);
    });
    if (host_.lends()) {
        host_.give_back(index);
    }
    rooms_[next_room_].left = event_of(copies_);
    next_room_ = (next_room_ + 1) % rooms_.size();
    loan(index).copied = event_of(copies_);
    loan(index).phase = Phase::coming;
}

torch::Tensor DeviceLoans::free_room() {
    auto& room = rooms_[next_room_];
    if (room.left && !room.left->query()) {
        room.left->synchronize();
    }
    return room.pinned;
}

void DeviceLoans::join(Loan& loan) const {
    if (loan.phase == Phase::coming) {
        loan.copied->block(current());
        loan.copied.reset();
        loan.phase = Phase::lent;
    }
}

void DeviceLoans::give_back(int index) {
    auto& each = loan(index);
    join(each);
    if (each.phase == Phase::lent) {
        leaving_.push_back({index, event_of(current())});
        each.phase = Phase::leaving;
        reap(max_leaving);
    }
}

void DeviceLoans::recall(int index) {
    std::erase_if(leaving_, [&](Leaving const& each) { return each.index == index; });
    loan(index).phase = Phase::lent;
}

/// Takes memory away from what was given back and is done, and waits until at most `max` are not.
void DeviceLoans::reap(std::size_t max) {
    while (!leaving_.empty()) {
        auto const& first = leaving_.front();
        if (!first.done.query()) {
            if (leaving_.size() <= max) {
                return;
            }
            first.done.synchronize();
        }
        for (auto const& range : foreign(first.index)) {
            array_.discard(range);
        }
        loan(first.index).phase = Phase::absent;
        leaving_.pop_front();
    }
}

void DeviceLoans::forget() {
    for (int index = 0; index < host_.partition().buckets(); ++index) {
        give_back(index);
    }
    reap(0);
}

} // namespace lockstep::train
