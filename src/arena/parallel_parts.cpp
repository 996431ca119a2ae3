#include "arena/parallel_parts.hpp"

#include <ATen/Parallel.h>

namespace lockstep::train {

std::int64_t parts_on(torch::Device device) {
    return device.is_cpu() ? at::get_num_threads() : 1;
}

void parallel_parts(torch::Device device,
                    std::function<void(std::int64_t, std::int64_t)> const& work) {
    auto const parts = parts_on(device);
    at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
        torch::NoGradGuard const no_grad; // of this thread
        for (auto part = begin; part < end; ++part) {
            work(part, parts);
        }
    });
}

Range part_of(std::int64_t count, std::int64_t part, std::int64_t parts) {
    auto const units = count / arena_unit;
    return {units * part / parts * arena_unit, units * (part + 1) / parts * arena_unit};
}

} // namespace lockstep::train
