#include "comm/collectives.hpp"
#include "comm/message_queue.hpp"
#include "comm/wire.hpp"

#include "counts.hpp"
#include "pending.hpp"

namespace lockstep::comm {

namespace {

class MpiFlight : public Flight {
  public:
    MpiFlight(Communicator const& comm, std::shared_ptr<MessageQueue> queue,
              std::shared_ptr<void const> memory)
        : comm_(comm),
          queue_(std::move(queue)), messages_{memory, std::make_shared<std::size_t>(0)},
          pending_(std::move(memory)) {}

    void send(int to, int tag, std::span<std::byte const> bytes) override {
        queue_->send(to, tag, bytes, messages_);
    }
    void receive(int from, int tag, std::span<std::byte> bytes) override {
        queue_->receive(from, tag, bytes, messages_);
    }
    void broadcast(std::span<std::byte> bytes) override { pending_.broadcast(comm_, bytes); }
    void minimum(double& value) override { pending_.minimum(comm_, value); }
    bool done() override { return *messages_.left == 0 && pending_.done(); }
    void wait(double timeout_seconds) override {
        Backoff backoff(timeout_seconds, "gradients or parameters from other ranks");
        while (!done()) {
            queue_->progress();
            backoff.pause();
        }
    }

  private:
    Communicator const& comm_;
    std::shared_ptr<MessageQueue> queue_; ///< of all flights
    MessageQueue::Owner messages_;
    Pending pending_; ///< what all ranks do together
};

class MpiWire : public Wire {
  public:
    explicit MpiWire(Communicator own)
        : comm_(std::move(own)), queue_(std::make_shared<MessageQueue>(comm_)) {}

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
    std::shared_ptr<MessageQueue> queue_;
};

} // namespace

std::unique_ptr<Wire> mpi_wire(Communicator own) {
    return std::make_unique<MpiWire>(std::move(own));
}

} // namespace lockstep::comm
