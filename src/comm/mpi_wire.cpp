#include "comm/collectives.hpp"
#include "comm/wire.hpp"

#include "pending.hpp"

namespace lockstep::comm {

namespace {

class MpiFlight : public Flight {
  public:
    MpiFlight(Communicator const& comm, std::shared_ptr<void const> memory)
        : comm_(comm), pending_(std::move(memory)) {}

    void send(int to, int tag, std::span<std::byte const> bytes) override {
        pending_.send(comm_, to, tag, bytes);
    }
    void receive(int from, int tag, std::span<std::byte> bytes) override {
        pending_.receive(comm_, from, tag, bytes);
    }
    bool done() override { return pending_.done(); }
    void wait(double timeout_seconds) override { pending_.wait(timeout_seconds); }

  private:
    Communicator const& comm_;
    Pending pending_;
};

class MpiWire : public Wire {
  public:
    explicit MpiWire(Communicator own) : comm_(std::move(own)) {}

    std::unique_ptr<Flight> flight(std::shared_ptr<void const> memory) override {
        return std::make_unique<MpiFlight>(comm_, std::move(memory));
    }
    double longest_pause_s() const override { return Backoff::shortest_pause_s; }
    void sum(std::span<double> values, double timeout_seconds) override {
        sum_with_deadline(comm_, values, timeout_seconds);
    }
    void broadcast(std::span<std::byte> bytes, double timeout_seconds) override {
        broadcast_with_deadline(comm_, bytes, timeout_seconds);
    }

  private:
    Communicator comm_;
};

} // namespace

std::unique_ptr<Wire> mpi_wire(Communicator own) {
    return std::make_unique<MpiWire>(std::move(own));
}

} // namespace lockstep::comm
