// The way of the parameters, from the ranks that have updated them to the others.

#include "base/clock.hpp"

#include "pending.hpp"
#include "tree_exchange.hpp"

namespace lockstep::comm {

/// Messages move only while MPI is called: no sleep on an arrival here.
template <class Condition>
void TreeExchange::wait_for_parameters(Condition const& condition) {
    Stopwatch const watch;
    Backoff backoff(options_.timeout_seconds, "gradients or parameters from other ranks",
                    wire_->longest_pause_s());
    while (!condition()) {
        backoff.pause();
    }
    spent().exposed_s += watch.seconds();
}

void TreeExchange::send_parameters() {
    Stopwatch const watch;
    if (options_.sums_everywhere) { // every rank has updated all of its own parameters
        settle_imbalance();
    } else if (one_host()) {
        arrivals_.arrive();
        arrivals_.wait_all(arrivals_.count());
    } else if (loans_) {
        give_back_all();
        loans_->publish();
        settle_imbalance();
    } else {
        publishing_ = true;
        published_ = arrivals_.count();
        taken_ = arrived_ = 0;
        gather_.begin(parameters());
        cost_.bytes += gather_.bytes();
        cost_.messages += gather_.messages();
    }
    cost_.exposed_s += watch.seconds();
}

/// A bucket is there when every rank of the host has updated its shard and received those that it
/// serves.
int TreeExchange::arrived() {
    if (!publishing_) {
        return partition_.buckets();
    }
    wire_->progress();
    gather_.advance();
    for (; taken_ < gather_.finished(); ++taken_) {
        arrivals_.arrive();
    }
    while (arrived_ < taken_ &&
           arrivals_.all_reached(published_ + static_cast<std::uint32_t>(arrived_) + 1)) {
        ++arrived_;
    }
    if (arrived_ == partition_.buckets() && gather_.is_done() &&
        (!min_flight_ || min_flight_->done())) {
        end_publishing(); // nobody has to look any more
    }
    return arrived_;
}

void TreeExchange::wait_arrived(int count) {
    wait_for_parameters([&] { return arrived() >= count; });
}

void TreeExchange::finish_publishing() {
    if (loans_) {
        for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
            loans_->lend(bucket);
        }
        loans_->meet();
        has_all_ = true;
        return;
    }
    wait_for_parameters([&] {
        arrived(); // which ends it
        return is_whole();
    });
}

void TreeExchange::lend(int index) {
    Stopwatch const watch;
    loans_->lend(index);
    cost_.exposed_s += watch.seconds();
}

void TreeExchange::ask_for(int index) {
    loans_->ask(index);
}

void TreeExchange::give_back(int index) {
    loans_->give_back(index);
}

void TreeExchange::give_back_all() {
    loans_->give_back_all();
    has_all_ = false;
}

void TreeExchange::meet() {
    if (loans_) {
        loans_->meet();
        has_all_ = false; // a pass has given some of them back
    }
}

void TreeExchange::serve() {
    if (loans_) {
        loans_->progress();
    }
}

void TreeExchange::end_publishing() {
    publishing_ = false;
    if (is_summing()) {
        begin_between();
    } else {
        settle_imbalance();
    }
}

} // namespace lockstep::comm
