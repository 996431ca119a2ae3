#pragma once

#include "base/clean_up.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/data/facts.hpp"
#include "model_files/predict.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::app {

struct PredictInputOptions {
    std::filesystem::path output; ///< beside which imported samples are written
    bool skip_bad = false;        ///< skip samples that cannot be read, and tell them
    bool center_crop = false;     ///< of pictures, as import::ImageImport has it
    std::uint64_t shorter = 0;    ///< likewise
    std::string alpha = "drop";   ///< or blend
};

/// What the words of `lockstep predict` name, as samples that a model of these facts takes: HDF5
/// files as they are; pictures, recordings and tables are imported as the model's own samples were,
/// into a file beside the output, which is removed with this object.
class PredictInputs {
  public:
    /// Collective  over `world`; same words and facts on all ranks
    /// Throws      AgreedError: 64 for words of several kinds, or a kind that the model does not
    ///             take; 65, 66, 73 or 74 as an import
    PredictInputs(comm::Communicator const& world, std::vector<std::string> const& words,
                  data::Facts const& facts, PredictInputOptions const& options);
    PredictInputs(PredictInputs const&) = delete;
    PredictInputs& operator=(PredictInputs const&) = delete;
    ~PredictInputs();

    train::Unlabelled const& samples() const noexcept { return samples_; }
    std::vector<std::string> const& remarks() const noexcept { return remarks_; }

  private:
    void import_them(comm::Communicator const& world, std::vector<std::string> const& words,
                     data::Facts const& facts, PredictInputOptions const& options);

    train::Unlabelled samples_;
    std::vector<std::string> remarks_;
    std::filesystem::path imported_; ///< empty: nothing was imported
    bool removes_ = false;           ///< this rank does, where it has to be removed
    std::optional<CleanUp> removal_; ///< if a signal ends this process
};

} // namespace lockstep::app
