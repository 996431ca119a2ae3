#include "lockstep/train/placement.hpp"

#include "lockstep/base/clock.hpp"
#include "lockstep/base/inject.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/comm/collectives.hpp"
#include "lockstep/train/precision.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

constexpr int warm_ups = 2;
constexpr int passes = 5;
constexpr std::int64_t made_up_rows = 64; ///< of a sample that has a number of rows of its own

nn::Fields made_up(std::vector<data::FieldInfo> const& infos, std::int64_t count,
                   torch::Device device) {
    std::vector<nn::Field> fields;
    for (auto const& info : infos) {
        std::vector<std::int64_t> shape(info.shape.begin(), info.shape.end());
        shape.insert(shape.begin(), info.ragged ? count * made_up_rows : count);
        auto const type = info.whole ? torch::kInt64 : torch::kFloat32;
        nn::Field field{torch::zeros(shape, torch::TensorOptions(type).device(device)), {}};
        if (info.ragged) {
            field.lengths = torch::full({count}, made_up_rows, torch::kInt64);
        }
        fields.push_back(std::move(field));
    }
    return nn::Fields(std::move(fields));
}

task::Tensors made_up(task::Samples const& samples, std::int64_t count, torch::Device device) {
    return {made_up(samples.inputs, count, device), made_up(samples.targets, count, device)};
}

} // namespace

std::vector<double> measured_speeds(comm::Communicator const& world, config::Deck const& deck,
                                    std::shared_ptr<nn::Model> model, task::Task const& task,
                                    task::Samples const& samples, torch::Device device) {
    double shortest = 0;
    comm::agree(world, "measuring the ranks' speeds", [&] {
        model->to(device);
        auto const batch = made_up(samples, deck.data.batch, device);
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
