#include "comm/collectives.hpp"
#include "comm/send_queue.hpp"
#include "comm/wire.hpp"

#include "counts.hpp"
#include "pending.hpp"

namespace lockstep::comm {

namespace {

class MpiFlight : public Flight {
  public:
    MpiFlight(Communicator const& comm, std::shared_ptr<SendQueue> queue,
              std::shared_ptr<void const> memory)
        : comm_(comm), queue_(std::move(queue)), memory_(std::move(memory)), pending_(memory_) {}

    void send(int to, int tag, std::span<std::byte const> bytes) override {
        queue_->add(to, tag, bytes, memory_, unsent_);
    }
    void receive(int from, int tag, std::span<std::byte> bytes) override {
        in_parts(bytes.size(), slice_bytes(bytes.size()), [&](std::size_t first, int length) {
            pending_.receive(comm_, from, tag,
                             bytes.subspan(first, static_cast<std::size_t>(length)));
        });
    }
    void broadcast(std::span<std::byte> bytes) override { pending_.broadcast(comm_, bytes); }
    void minimum(double& value) override { pending_.minimum(comm_, value); }
    bool done() override {
        queue_->progress();
        return pending_.done() && *unsent_ == 0;
    }
    void wait(double timeout_seconds) override {
        Backoff backoff(timeout_seconds, "gradients or parameters of other ranks");
        while (!done()) {
            backoff.pause();
        }
    }

  private:
    Communicator const& comm_;
    std::shared_ptr<SendQueue> queue_; ///< of all flights
    std::shared_ptr<void const> memory_;
    std::shared_ptr<std::size_t> unsent_ = std::make_shared<std::size_t>(0);
    Pending pending_;
};

class MpiWire : public Wire {
  public:
    explicit MpiWire(Communicator own)
        : comm_(std::move(own)), queue_(std::make_shared<SendQueue>(comm_)) {}

    std::unique_ptr<Flight> flight(std::shared_ptr<void const> memory) override {
        return std::make_unique<MpiFlight>(comm_, queue_, std::move(memory));
    }
    void progress() override { queue_->progress(); }
    double longest_pause_s() const override { return Backoff::shortest_pause_s; }
    void sum(std::span<double> values, double timeout_seconds) override {
        sum_with_deadline(comm_, values, timeout_seconds);
    }

  private:
    Communicator comm_;
    std::shared_ptr<SendQueue> queue_;
};

} // namespace

std::unique_ptr<Wire> mpi_wire(Communicator own) {
    return std::make_unique<MpiWire>(std::move(own));
}

} // namespace lockstep::comm
