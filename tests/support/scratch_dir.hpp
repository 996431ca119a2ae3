#pragma once

#include "comm/collectives.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::test {

/// A directory that goes with the test. With a communicator: made by rank 0, the same everywhere,
/// removed after all have left (construction and destruction are collective then).
class ScratchDir {
  public:
    ScratchDir() { make(); }
    explicit ScratchDir(comm::Communicator const& comm) : comm_(&comm) {
        if (comm.is_root()) {
            make();
        }
        comm::broadcast_text(comm, path_);
    }
    ScratchDir(ScratchDir const&) = delete;
    ScratchDir& operator=(ScratchDir const&) = delete;
    ~ScratchDir() {
        if (comm_ != nullptr) {
            comm::barrier(*comm_); // nobody still reads what is removed
        }
        if (comm_ == nullptr || comm_->is_root()) {
            std::error_code ignored;
            std::filesystem::remove_all(path_, ignored);
        }
    }

    std::filesystem::path path() const { return path_; }
    std::filesystem::path operator/(std::string const& name) const { return path() / name; }

  private:
    void make() {
        path_ = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
        if (::mkdtemp(path_.data()) == nullptr) {
            std::abort();
        }
    }

    comm::Communicator const* comm_ = nullptr;
    std::string path_;
};

} // namespace lockstep::test
