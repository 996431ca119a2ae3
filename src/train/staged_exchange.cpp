#include "staged_exchange.hpp"

#include "train/arena.hpp"

namespace lockstep::train {

namespace {

class StagedExchange : public comm::Exchange {
  public:
    StagedExchange(std::unique_ptr<comm::Exchange> host, torch::Device device)
        : Exchange(host->partition()), host_(std::move(host)) {
        auto const options = torch::TensorOptions(torch::kFloat32).device(device);
        gradients_ = torch::zeros({partition_.size()}, options);
        parameters_ = torch::zeros({partition_.size()}, options);
        host_gradients_ = borrowed(host_->gradients(), partition_.size(), torch::kCPU);
        host_parameters_ = borrowed(host_->parameters(), partition_.size(), torch::kCPU);
    }

    std::string name() const override { return host_->name() + ", staged through host memory"; }
    int rank() const noexcept override { return host_->rank(); }
    bool sums_everywhere() const noexcept override { return host_->sums_everywhere(); }
    float* gradients() noexcept override { return gradients_.mutable_data_ptr<float>(); }
    float* parameters() noexcept override { return parameters_.mutable_data_ptr<float>(); }

    void begin() override { host_->begin(); }
    void ready(int index) override {
        copy(host_gradients_, gradients_, partition_.bucket(index));
        host_->ready(index);
    }
    void finish(std::span<double> step_sums, std::span<std::byte> payload) override {
        host_->finish(step_sums, payload);
        for (auto const& range : held()) {
            copy(gradients_, host_gradients_, range);
        }
        cost_ = host_->cost();
    }
    std::span<double const> squares() const override { return host_->squares(); }
    void publish() override {
        if (sums_everywhere()) {
            return;
        }
        for (auto const& range : partition_.owned(rank())) {
            copy(host_parameters_, parameters_, range);
        }
        host_->publish();
        copy(parameters_, host_parameters_, {0, partition_.size()});
        cost_ = host_->cost();
    }

  private:
    std::vector<comm::Range> held() const {
        return sums_everywhere() ? std::vector<comm::Range>{{0, partition_.size()}}
                                 : partition_.owned(rank());
    }
    static void copy(torch::Tensor const& into, torch::Tensor const& from, comm::Range range) {
        torch::NoGradGuard const no_grad;
        into.narrow(0, range.first, range.count())
            .copy_(from.narrow(0, range.first, range.count()));
    }

    std::unique_ptr<comm::Exchange> host_;
    torch::Tensor gradients_;
    torch::Tensor parameters_;
    torch::Tensor host_gradients_;
    torch::Tensor host_parameters_;
};

} // namespace

std::unique_ptr<comm::Exchange> staged_exchange(std::unique_ptr<comm::Exchange> host,
                                                torch::Device device) {
    return std::make_unique<StagedExchange>(std::move(host), device);
}

} // namespace lockstep::train
