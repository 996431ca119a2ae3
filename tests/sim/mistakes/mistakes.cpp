// Mistakes that programs make with accelerators, each beside the right way:
//     mistakes NAME right|wrong
// Exit code 0: the values are right; 1: wrong; 2: a race was found; 3: an error. No arguments:
// lists the names.

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

#include <functional>
#include <iostream>
#include <string_view>

#include "../runtime.hpp"

namespace {

namespace sim = lockstep::sim;
using torch::Tensor;

constexpr std::int64_t elements = 1 << 16;

class Devices {
  public:
    torch::Device first{"sim:0"};
    torch::Device second{"sim:1"};
    torch::TensorOptions options = torch::TensorOptions(first);

    c10::Stream main() const { return streams_.getStream(first); }
    c10::Stream beside() const { return streams_.getStreamFromGlobalPool(first); }
    void wait() const { streams_.synchronizeStream(main()); }
    void wait(c10::Stream const& stream) const { streams_.synchronizeStream(stream); }
    Tensor full(float value) const { return torch::full({elements}, value, options); }

  private:
    c10::impl::VirtualGuardImpl streams_{first.type()};
};

/// Puts later work of `later` behind what is on `earlier` now.
void join(c10::Stream const& later, c10::Stream const& earlier) {
    c10::Event event(earlier.device_type());
    event.record(earlier);
    event.block(later);
}

bool all_are(Tensor const& values, float value) {
    return values.eq(value).all().item<bool>();
}

bool read_too_early(Devices const& on, bool right) {
    auto const beside = on.beside();
    auto const values = on.full(0);
    for (int i = 0; i < 5; ++i) {
        values.add_(1);
    }
    if (right) {
        join(beside, on.main());
    }
    c10::StreamGuard const now(beside);
    auto const copy = values + 0;
    on.wait(beside);
    return all_are(copy, 5);
}

bool overwritten_too_early(Devices const& on, bool right) {
    auto const beside = on.beside();
    auto const values = on.full(5);
    auto const copy = on.full(0);
    on.wait();
    {
        c10::StreamGuard const now(beside);
        copy.copy_(values);
    }
    if (right) {
        join(on.main(), beside);
    }
    values.fill_(7);
    on.wait();
    on.wait(beside);
    return all_are(copy, 5);
}

bool freed_too_early(Devices const& on, bool right) {
    auto const beside = on.beside();
    Tensor used;
    {
        Tensor values;
        {
            c10::StreamGuard const now(beside);
            values = on.full(5);
        }
        join(on.main(), beside);
        if (right) {
            values.record_stream(on.main());
        }
        used = values * 1;
    }
    {
        c10::StreamGuard const now(beside);
        on.full(9);
    }
    return all_are(used, 5);
}

bool pinned_read_too_early(Devices const& on, bool right) {
    auto const host = on.full(5).to(torch::kCPU, torch::kFloat32, /*non_blocking=*/true);
    if (right) {
        on.wait();
    }
    return all_are(host, 5);
}

bool pinned_written_too_early(Devices const& on, bool right) {
    auto const host = torch::full({elements}, 5.0F, torch::TensorOptions().pinned_memory(true));
    auto const values = host.to(on.first, torch::kFloat32, /*non_blocking=*/true);
    if (right) {
        on.wait();
    }
    host.fill_(7);
    return all_are(values, 5);
}

/// Allowed: such memory is taken at once.
bool pageable_written(Devices const& on, bool) {
    auto const host = torch::full({elements}, 5.0F);
    auto const values = host.to(on.first, torch::kFloat32, /*non_blocking=*/true);
    host.fill_(7);
    return all_are(values, 5);
}

bool read_by_the_host(Devices const& on, bool right) {
    auto const values = on.full(5);
    on.wait();
    return right ? all_are(values, 5)
                 : static_cast<float const volatile*>(values.const_data_ptr())[17] == 5;
}

bool source_of_a_copy_between_devices(Devices const& on, bool right) {
    auto const values = on.full(5);
    auto const there = values.to(on.second);
    auto const writer = right ? on.main() : on.beside();
    c10::StreamGuard const now(writer);
    values.fill_(7);
    return all_are(there, 5);
}

bool of_two_devices(Devices const& on, bool right) {
    auto const there = on.full(1).to(on.second);
    return all_are(on.full(1) + (right ? there.to(on.first) : there), 2);
}

bool of_the_host(Devices const& on, bool right) {
    auto const host = torch::ones({elements});
    return all_are(on.full(1) + (right ? host.to(on.first) : host), 2);
}

bool not_written(Devices const& on, bool right) {
    auto const values = torch::empty({elements}, on.options);
    if (right) {
        values.fill_(5);
    }
    return all_are(values, 5);
}

bool index_out_of_range(Devices const& on, bool right) {
    auto const index = torch::full({4}, right ? 3 : elements + 1, on.options.dtype(torch::kInt64));
    return all_are(on.full(1).index_select(0, index), 1);
}

/// Work that is recorded and replayed on a stream beside.
class Recorded {
  public:
    Recorded(Devices const& on, std::function<void()> const& work) {
        join(on_, on.main());
        c10::StreamGuard const now(on_);
        auto& stream = sim::current_stream(0);
        sim::begin_recording(stream, memory_);
        try {
            work();
            graph_ = sim::end_recording(stream);
        } catch (...) {
            sim::abandon_recording(stream);
            throw;
        }
    }
    void replay(Devices const& on) const {
        join(on_, on.main());
        {
            c10::StreamGuard const now(on_);
            sim::replay(*graph_, sim::current_stream(0));
        }
        join(on.main(), on_);
    }

  private:
    c10::Stream on_ = Devices().beside();
    std::shared_ptr<sim::GraphMemory> memory_ = sim::new_graph_memory();
    std::shared_ptr<sim::Graph> graph_;
};

/// A replay would find the values that the host had when it was recorded.
bool host_values_in_a_graph(Devices const& on, bool right) {
    auto const mask = on.full(1);
    Tensor result;
    Recorded const graph(on, [&] {
        auto const host = torch::full({elements}, 3.0F).pin_memory();
        result = on.full(2) * (right ? mask : host.to(on.first, torch::kFloat32, true));
    });
    mask.copy_(torch::full({elements}, 3.0F));
    graph.replay(on);
    return all_are(result, 6);
}

bool waited_in_a_graph(Devices const& on, bool right) {
    auto const values = on.full(5);
    Tensor result;
    Recorded const graph(
        on, [&] { result = right ? values + values.sum() : values + values.sum().item<float>(); });
    graph.replay(on);
    return all_are(result, 5 + 5.0F * elements);
}

bool never_replayed(Devices const& on, bool right) {
    auto const values = on.full(5);
    Recorded const graph(on, [&] { values.add_(1); });
    if (right) {
        graph.replay(on);
        graph.replay(on);
    }
    return all_are(values, 7);
}

/// What the graph has freed, it uses again.
bool freed_by_a_graph(Devices const& on, bool right) {
    auto const values = on.full(5);
    Tensor kept;
    Tensor result;
    void* lost = nullptr;
    Recorded const graph(on, [&] {
        auto const between = values + 1;
        lost = between.mutable_data_ptr();
        kept = right ? between : Tensor();
        result = between * 2;
    });
    graph.replay(on);
    auto const found = torch::from_blob(lost, {elements}, on.options);
    return all_are(result, 12) && all_are(found, 6);
}

struct Mistake {
    std::string_view name;
    bool (*run)(Devices const&, bool);
};
constexpr Mistake mistakes[] = {
    {"read_too_early", read_too_early},
    {"overwritten_too_early", overwritten_too_early},
    {"freed_too_early", freed_too_early},
    {"pinned_read_too_early", pinned_read_too_early},
    {"pinned_written_too_early", pinned_written_too_early},
    {"pageable_written", pageable_written},
    {"read_by_the_host", read_by_the_host},
    {"source_of_a_copy_between_devices", source_of_a_copy_between_devices},
    {"of_two_devices", of_two_devices},
    {"of_the_host", of_the_host},
    {"not_written", not_written},
    {"index_out_of_range", index_out_of_range},
    {"host_values_in_a_graph", host_values_in_a_graph},
    {"waited_in_a_graph", waited_in_a_graph},
    {"never_replayed", never_replayed},
    {"freed_by_a_graph", freed_by_a_graph},
};

} // namespace

int main(int count, char** words) {
    torch::set_num_threads(1);
    for (auto const& [name, run] : mistakes) {
        if (count < 3) {
            std::cout << name << "\n";
        } else if (name == words[1]) {
            try {
                return run({}, std::string_view(words[2]) == "right") ? 0 : 1;
            } catch (lockstep::sim::Race const& race) {
                std::cerr << race.what() << "\n";
                return 2;
            } catch (std::exception const& error) {
                std::cerr << error.what() << "\n";
                return 3;
            }
        }
    }
    return 0;
}
