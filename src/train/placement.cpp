#include "placement.hpp"

#include "base/clock.hpp"
#include "base/inject.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "device/autocast.hpp"
#include "device/place.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

constexpr int warm_ups = 2;
constexpr int passes = 5;

} // namespace

task::Tensors zero_batch(task::Samples const& samples, std::int64_t count, torch::Device device) {
    return {nn::zeros(samples.inputs, count, device), nn::zeros(samples.targets, count, device)};
}

std::vector<double> measured_speeds(comm::Communicator const& world, config::Deck const& deck,
                                    std::shared_ptr<nn::Model> model, task::Task const& task,
                                    task::Samples const& samples, torch::Device device) {
    double shortest = 0;
    comm::agree(world, "measuring the ranks' speeds", [&] {
        place(*model, device);
        auto const batch = zero_batch(samples, deck.data.batch, device);
        for (int pass = 0; pass < warm_ups + passes; ++pass) {
            Stopwatch const watch;
            inject_fault(world.rank(), 0);
            auto const loss = [&] {
                Autocast const autocast(deck.precision, device);
                return task.training_loss(*model, batch);
            }();
            loss.sum.backward();
            loss.sum.item<double>(); // a device has finished
            if (pass >= warm_ups) {
                shortest = pass == warm_ups ? watch.seconds() : std::min(shortest, watch.seconds());
            }
        }
    });
    return comm::all_gather(world, 1 / shortest);
}

} // namespace lockstep::train
