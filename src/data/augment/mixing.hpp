#pragma once

#include "data/augment/draws.hpp"
#include "data/augment/sample_form.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

class Entry;

/// Mixes each sample of a micro-batch with another one of it: mixup (Zhang et al., arXiv
/// 1710.09412), or cutmix (Yun et al., arXiv 1905.04899). The micro-batches of a run are the same
/// on any number of ranks.
class Mixing {
  public:
    /// Adds an entry; where several are added, at most one of them is drawn for a micro-batch.
    ///
    /// Throws  Error 64 for samples that cannot be mixed, or probabilities of more than 1 together
    void add(Entry const& entry);

    bool empty() const noexcept { return ways_.empty(); }
    /// Mixes the first input. Targets of real values are mixed, too; labels get two more fields:
    /// those of the other samples, and the share that each sample keeps of its own.
    void apply(Batch& batch, SampleForm const& form, std::uint64_t key) const;

  private:
    struct Way {
        bool cuts;
        double alpha;
        double probability; ///< 0: its part of 1
    };
    Way const* drawn(SampleDraws& draws) const;

    std::vector<Way> ways_;
};

/// A share from a beta distribution whose two parameters are both `alpha`.
double beta_draw(double alpha, SampleDraws& draws);

} // namespace lockstep::data
