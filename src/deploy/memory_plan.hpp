#pragma once

#include "deploy/graph.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::deploy {

/// Where the values between the nodes lie while one sample is computed: an array for each type of
/// element, in which values that are not needed at the same time share memory.
class MemoryPlan {
  public:
    explicit MemoryPlan(Graph const& graph);

    /// Element of its type's array at which a value begins; nothing for constants, the input and
    /// the output, which lie elsewhere.
    std::optional<std::int64_t> place(TensorId id) const;
    /// The tensor whose storage a value uses: a reshaped value stays where it is.
    TensorId storage(TensorId id) const { return roots_[id]; }

    std::int64_t size(Element element) const { return sizes_[static_cast<std::size_t>(element)]; }
    std::uint64_t bytes() const;

  private:
    struct Range {
        std::int64_t first;
        std::int64_t count;
        std::size_t last_use;
    };
    void find_storage(Graph const& graph);
    void find_last_uses(Graph const& graph);
    std::int64_t claim(std::vector<Range>& taken, std::int64_t count, std::size_t node,
                       std::size_t last_use);

    std::vector<TensorId> roots_;
    std::vector<std::size_t> last_uses_; ///< by root: number of a node
    std::vector<std::optional<std::int64_t>> places_;
    std::array<std::int64_t, element_types> sizes_{};
};

/// What an exported model costs.
struct Costs {
    std::int64_t parameters = 0;
    std::int64_t multiplications = 0; ///< with an addition each, for one sample
    std::uint64_t peak_bytes = 0;     ///< of values between nodes, for one sample
};
Costs costs_of(Graph const& graph);

} // namespace lockstep::deploy
