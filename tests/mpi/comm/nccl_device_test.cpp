// Registered only where there is a GPU, on at most as many ranks as there are GPUs.

#include "comm/device_communicator.hpp"
#include "comm/nccl.hpp"
#include "comm/topology.hpp"
#include "lockstep/base/error.hpp"

#include <cuda_runtime_api.h>

#include <stdexcept>

#include "catch.hpp"
#include "world.hpp"

using namespace lockstep;

namespace {

void check_cuda(cudaError_t result) {
    if (result != cudaSuccess) {
        throw std::runtime_error(cudaGetErrorString(result));
    }
}

/// A compute stream as LibTorch's are: it does not wait for the default stream.
class ComputeStream {
  public:
    ComputeStream() { check_cuda(cudaStreamCreateWithFlags(&raw_, cudaStreamNonBlocking)); }
    ComputeStream(ComputeStream const&) = delete;
    ComputeStream& operator=(ComputeStream const&) = delete;
    ~ComputeStream() { cudaStreamDestroy(raw_); }
    cudaStream_t raw() const { return raw_; }

  private:
    cudaStream_t raw_ = nullptr;
};

/// Elements in device memory, filled and read on the compute stream only, so that a test fails
/// when an operation does not keep its place in that stream.
template <class T>
class DeviceVector {
  public:
    DeviceVector(std::vector<T> const& values, ComputeStream const& stream)
        : count_(values.size()), stream_(stream.raw()) {
        check_cuda(cudaMalloc(&data_, count_ * sizeof(T)));
        check_cuda(cudaMemcpyAsync(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice,
                                   stream_));
    }
    DeviceVector(DeviceVector const&) = delete;
    DeviceVector& operator=(DeviceVector const&) = delete;
    ~DeviceVector() { cudaFree(data_); }

    comm::DeviceSpan span(comm::DeviceType type) const { return {data_, count_, type}; }
    comm::DeviceView view(comm::DeviceType type) const { return {data_, count_, type}; }
    T* at(std::size_t first) const { return static_cast<T*>(data_) + first; }

    std::vector<T> values() const {
        std::vector<T> host(count_);
        check_cuda(cudaMemcpyAsync(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost,
                                   stream_));
        check_cuda(cudaStreamSynchronize(stream_));
        return host;
    }

  private:
    std::size_t count_;
    cudaStream_t stream_;
    void* data_ = nullptr;
};

comm::DeviceCommunicator make_communicator() {
    auto const topology = comm::Topology::discover(test::world());
    int devices = 0;
    check_cuda(cudaGetDeviceCount(&devices));
    return {test::world(),
            *comm::nccl_library(),
            {.device = comm::device_of(topology, devices), .timeout_seconds = 60}};
}

} // namespace

TEST_CASE("all-reduce adds over all ranks, in the order of the stream") {
    auto nccl = make_communicator();
    ComputeStream const stream;
    int const ranks = test::world().size();
    std::vector<float> mine(1'000'003);
    std::vector<float> expected(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
        mine[i] = static_cast<float>(i % 1000) + static_cast<float>(test::world().rank());
        expected[i] = static_cast<float>(ranks) * static_cast<float>(i % 1000) +
                      static_cast<float>(ranks * (ranks - 1) / 2);
    }
    DeviceVector<float> const values(mine, stream);
    nccl.all_reduce_sum(values.span(comm::DeviceType::float32), stream.raw());
    CHECK(values.values() == expected);
    nccl.check_async();
}

TEST_CASE("memory that NCCL gives is summed like any other, and goes before NCCL ends") {
    auto nccl = make_communicator();
    ComputeStream const stream;
    std::vector<float> host(5000, 1.0F + static_cast<float>(test::world().rank()));
    auto const bytes = host.size() * sizeof(float);
    auto const memory = nccl.allocate(bytes, GENERATE(false, true));
    if (memory.data() == nullptr) {
        WARN("this NCCL or this GPU has none");
        return;
    }
    check_cuda(
        cudaMemcpyAsync(memory.data(), host.data(), bytes, cudaMemcpyHostToDevice, stream.raw()));
    nccl.all_reduce_sum({memory.data(), host.size(), comm::DeviceType::float32}, stream.raw());
    check_cuda(
        cudaMemcpyAsync(host.data(), memory.data(), bytes, cudaMemcpyDeviceToHost, stream.raw()));
    check_cuda(cudaStreamSynchronize(stream.raw()));
    auto const ranks = static_cast<float>(test::world().size());
    CHECK(host == std::vector<float>(host.size(), ranks * (ranks + 1) / 2));
}

TEST_CASE("an exchange carries slices of different length between all ranks, and to oneself") {
    auto nccl = make_communicator();
    ComputeStream const stream;
    int const rank = test::world().rank();
    int const ranks = test::world().size();
    // From rank a to rank b go a + 2 b + 1 elements, each 100 a + b.
    auto const length = [](int from, int to) {
        return static_cast<std::size_t>(from + 2 * to + 1);
    };
    std::vector<float> outgoing;
    std::vector<float> expected;
    for (int peer = 0; peer < ranks; ++peer) {
        outgoing.insert(outgoing.end(), length(rank, peer), static_cast<float>(100 * rank + peer));
        expected.insert(expected.end(), length(peer, rank), static_cast<float>(100 * peer + rank));
    }
    DeviceVector<float> const out(outgoing, stream);
    DeviceVector<float> const in(std::vector<float>(expected.size(), -1), stream);
    std::vector<comm::DeviceMessage> shards;
    std::size_t sent = 0;
    std::size_t received = 0;
    for (int peer = 0; peer < ranks; ++peer) {
        shards.push_back({peer,
                          {out.at(sent), length(rank, peer), comm::DeviceType::float32},
                          {in.at(received), length(peer, rank), comm::DeviceType::float32}});
        sent += length(rank, peer);
        received += length(peer, rank);
    }
    nccl.exchange(shards, stream.raw());
    CHECK(in.values() == expected);
}

TEST_CASE("after an abort every operation is an error 76") {
    auto nccl = make_communicator();
    ComputeStream const stream;
    DeviceVector<float> const values(std::vector<float>(8, 1), stream);
    nccl.abort();
    auto const code = [&] {
        try {
            nccl.all_reduce_sum(values.span(comm::DeviceType::float32), stream.raw());
        } catch (Error const& error) {
            return error.code();
        }
        return ExitCode::ok;
    }();
    CHECK(code == ExitCode::rank_lost);
    CHECK_THROWS_AS(nccl.check_async(), Error);
}
