#include "measure/train_side/estimate_table.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <iomanip>
#include <iostream>

namespace lockstep::measure {

namespace {

std::string time_text(double seconds) {
    return seconds < 1 ? concat(fixed(seconds * 1e3, 2), " ms") : duration_text(seconds);
}

std::string parts_text(comm::StepParts const& parts) {
    return concat(time_text(whole(parts)), ": compute ", time_text(parts.compute), ", sum ",
                  time_text(parts.sum), ", update ", time_text(parts.update), ", imbalance ",
                  time_text(parts.imbalance), ", rest ", time_text(parts.rest));
}

} // namespace

double whole(comm::StepParts const& parts) {
    return parts.compute + parts.sum + parts.update + parts.imbalance + parts.rest;
}

std::string start_text(train::RunPlan const& plan) {
    if (plan.newest.empty()) {
        return "it starts at step 0";
    }
    return plan.finished
               ? concat("it is finished at step ", plan.done, ", according to ", plan.newest)
               : concat("it resumes at step ", plan.done, " from ", plan.newest);
}

void EstimateTable::start(train::RunPlan const& plan) const {
    if (!options_.json) {
        std::cout << "run                " << plan.deck.run.directory << ": " << start_text(plan)
                  << (plan.newest.empty() ? "" : "; the times below are for all its steps") << "\n";
        if (!plan.early_end.empty()) {
            std::cout << std::string(19, ' ') << plan.early_end << "\n";
        }
    }
}

void EstimateTable::refused(int ranks, Error const& why) const {
    if (options_.json) {
        nlohmann::ordered_json const line{{"ranks", ranks}, {"problem", why.what()}};
        std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
        return;
    }
    std::cout << std::right << std::setw(6) << ranks << "  refused: " << why.text().what << ": "
              << why.text().why << "\n";
}

void EstimateTable::basis(comm::ScalingInputs const& inputs, std::string const& network,
                          std::optional<Together> const& measured) const {
    if (options_.json) {
        return;
    }
    std::cout << "one rank alone     " << parts_text(inputs.alone) << "\n";
    if (measured && measured->ranks > inputs.measured && inputs.measured > 1) {
        std::cout << inputs.measured << " ranks of a host  " << parts_text(inputs.together) << "\n";
    }
    if (measured) {
        auto blind = inputs; // what would have been said without having measured it
        bool const of_host = measured->ranks > measured->per_host && measured->per_host > 1;
        blind.measured = of_host ? inputs.measured : 1;
        blind.replicas = 0;
        blind.load = nullptr;
        blind.ranks_per_host = measured->per_host;
        auto const predicted = comm::predict(blind, measured->ranks).step_s;
        auto const error = 100 * (predicted / whole(measured->parts) - 1);
        std::cout << measured->ranks << " ranks together   " << parts_text(measured->parts)
                  << (inputs.replicas > 0 && inputs.replicas != measured->ranks
                          ? " (with one replica each)"
                          : "")
                  << "\n    predicted from " << (of_host ? "each host alone" : "one rank alone")
                  << ": " << time_text(predicted) << ", with an error of " << (error < 0 ? "" : "+")
                  << fixed(error, 0) << " %\n";
    }
    std::cout << "network of hosts   " << fixed(inputs.between.latency_s * 1e6, 1) << " us + "
              << bytes_text(static_cast<std::uint64_t>(inputs.between.bytes_per_s)) << "/s, "
              << network << "; " << amount_of(inputs.ranks_per_host, "rank") << " per host\n"
              << "gradients          " << bytes_text(static_cast<std::uint64_t>(inputs.arena_bytes))
              << " in " << amount_of(inputs.buckets, "bucket") << ", "
              << (inputs.replicas > 0 ? concat(amount_of(inputs.replicas, "replica"), " in all")
                                      : std::string("a replica on each rank"))
              << "\n\n";
}

void EstimateTable::head() const {
    if (options_.json) {
        return;
    }
    std::cout << std::right << std::setw(6) << "ranks" << std::setw(7) << "hosts" << std::setw(13)
              << "step" << std::setw(13) << "samples/s" << std::setw(8) << "ideal" << std::setw(11)
              << "predicted" << std::setw(12) << "efficiency" << std::setw(14) << "the run takes";
    if (options_.price > 0) {
        std::cout << std::setw(12) << "cost";
    }
    if (options_.watts > 0) {
        std::cout << std::setw(12) << "kWh";
    }
    std::cout << "\n";
}

void EstimateTable::row(comm::Prediction const& row, std::int64_t steps) const {
    auto const run_s = row.step_s * static_cast<double>(steps);
    auto const rank_hours = run_s / 3600 * row.ranks;
    auto const kilowatt_hours = rank_hours * options_.watts / 1000;
    if (options_.json) {
        nlohmann::ordered_json line{{"ranks", row.ranks},
                                    {"hosts", row.hosts},
                                    {"replicas", row.replicas},
                                    {"step_s", row.step_s},
                                    {"samples_per_s", row.samples_per_s},
                                    {"ideal", row.ranks},
                                    {"speed_up", row.speed_up},
                                    {"efficiency", row.efficiency},
                                    {"run_s", run_s},
                                    {"cost", rank_hours * options_.price},
                                    {"kwh", kilowatt_hours}};
        std::cout << line.dump() << "\n";
        return;
    }
    std::cout << std::right << std::setw(6) << row.ranks << std::setw(7) << row.hosts
              << std::setw(13) << time_text(row.step_s) << std::setw(13)
              << fixed(row.samples_per_s, 0) << std::setw(8) << row.ranks << std::setw(11)
              << fixed(row.speed_up, 2) << std::setw(10) << fixed(100 * row.efficiency, 0) << " %"
              << std::setw(14) << duration_text(run_s);
    if (options_.price > 0) {
        std::cout << std::setw(12) << fixed(rank_hours * options_.price, 2);
    }
    if (options_.watts > 0) {
        std::cout << std::setw(12) << fixed(kilowatt_hours, 2);
    }
    std::cout << "\n";
}

} // namespace lockstep::measure
