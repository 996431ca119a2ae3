#pragma once

#include "comm/exchange.hpp"
#include "comm/hosts.hpp"
#include "comm/make_tree_exchange.hpp"
#include "comm/tree_sum.hpp"
#include "comm/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arrivals.hpp"
#include "host_gather.hpp"
#include "host_memory.hpp"
#include "host_reduction.hpp"
#include "parameter_loans.hpp"
#include "partial.hpp"

namespace lockstep::comm {

/// One rank's part of the ordered exchange in host memory.
class TreeExchange : public Exchange {
  public:
    /// To other hosts; null: there are none.
    struct Wires {
        std::unique_ptr<Wire> sums;
        std::unique_ptr<Wire> loans; ///< null, too, where nothing is lent
    };
    /// `partials`: of all hosts
    TreeExchange(TreeExchangeOptions const& options, HostMemory memory, Hosts hosts,
                 std::vector<Partial> const& partials, int rank, Wires wires, std::string name);
    ~TreeExchange() override;

    std::string name() const override { return name_; }
    int rank() const noexcept override { return rank_; }
    bool sums_everywhere() const noexcept override { return options_.sums_everywhere; }
    float* gradients() noexcept override { return memory_.gradients(local_); }
    float* parameters() noexcept override { return memory_.parameters(local_); }

    void begin_sum(double /*unit*/) override;
    void bucket_ready(int index) override;
    void finish_sum(std::span<double> step_sums, std::span<std::byte> payload) override;
    std::span<double const> squares() const override {
        return one_host() ? std::span<double const>(memory_.squares(), reduction_blocks())
                          : std::span<double const>(all_squares_).last(reduction_blocks());
    }
    bool can_publish_later() const noexcept override { return !options_.sums_everywhere; }
    bool is_whole() const noexcept override { return loans_ ? has_all_ : !publishing_; }
    bool lends() const noexcept override { return loans_ != nullptr; }
    void lend(int index) override;
    void ask_for(int index) override;
    void give_back(int index) override;
    void serve() override;
    void meet() override;
    void prepare_gradients(int index) override;
    int arrived() override;
    ExchangeCost take_cost() override;

  private:
    void send_parameters() override;
    void wait_arrived(int count) override;
    void finish_publishing() override;
    void end_publishing();
    void give_back_all();
    void discard_done();

    std::size_t reduction_blocks() const {
        return static_cast<std::size_t>(partition_.reduction_blocks());
    }
    bool one_host() const { return hosts_.count() == 1; }
    float* gradients_of(int rank) { return memory_.gradients(hosts_.local(rank)); }

    void progress();
    void sum_on_host(int bucket);
    void record_finished(int before) const;
    void share_step_sums(std::span<double> step_sums, std::span<std::byte> payload);
    void spread(float* array);
    void poll_until_summed(std::uint32_t computed);
    void begin_between();
    void compare_hosts(double exposed_s);
    ExchangeCost& spent() { return cost_is_taken_ ? late_ : cost_; }
    void settle_imbalance();
    void pay_owed(ExchangeCost& cost);
    template <class Condition>
    void wait_for_parameters(Condition const& condition);

    TreeExchangeOptions options_;
    HostMemory memory_;
    Hosts hosts_;
    int rank_;
    int host_;
    int local_;
    Wires wires_;
    Wire* wire_; ///< of sums and parameters
    std::string name_;

    std::vector<Partial> partials_;  ///< of this host
    std::vector<TreeSum> host_sums_; ///< of each
    std::vector<int> served_;        ///< whose shards this rank works on for its host
    Arrivals arrivals_;
    Arrivals done_; ///< with buckets of gradients: a rank does not read them any more
    HostReduction between_;
    HostGather gather_;                     ///< the way back
    std::unique_ptr<ParameterLoans> loans_; ///< null: all parameters have memory
    bool has_all_ = false;                  ///< on loan

    bool publishing_ = false;     ///< parameters are on their way between hosts
    std::uint32_t published_ = 0; ///< arrivals of this rank when that began
    int taken_ = 0;               ///< buckets, from the last one, that this rank has for its host
    int arrived_ = 0;             ///< buckets that all ranks of the host have
    ExchangeCost late_;           ///< of the step, since its cost was taken
    bool cost_is_taken_ = false;
    std::uint32_t start_ = 0;                ///< arrivals of this rank when the step began
    int announced_ = 0;                      ///< buckets that this rank has given
    std::uint32_t done_before_ = 0;          ///< buckets that it had done when the step began
    int discarded_ = 0;                      ///< buckets whose gradients are given up
    int summed_ = 0;                         ///< buckets summed on this host
    std::vector<std::int64_t> summed_at_ns_; ///< by bucket, of the recorder's clock
    bool in_backward_ = false;
    bool odd_step_ = false;
    std::vector<double> all_squares_; ///< behind the step_sums; with several hosts only
    std::shared_ptr<std::vector<std::byte>> payload_; ///< on its way from rank 0; the same
    std::unique_ptr<Flight> payload_flight_;
    double exposed_s_ = 0;                  ///< in finish, as this host's ranks alone tell
    double owed_s_ = 0;                     ///< exposed, and found out to have been a wait
    std::shared_ptr<double> min_exposed_s_; ///< of all ranks
    std::unique_ptr<Flight> min_flight_;    ///< that of min_exposed_s_; null: none
};

} // namespace lockstep::comm
