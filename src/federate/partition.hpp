#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lockstep::federate {

/// Which site each sample belongs to, for simulations: drawn by class, the shares of the sites from
/// a Dirichlet distribution (Hsu, Qi, Brown, arXiv 1909.06335) where `concentration` is above 0,
/// else even. Each site has at least one sample.
///
/// Shape   labels [samples]; the result too
/// Throws  Error 64 for more sites than samples
struct PartitionOptions {
    std::int64_t sites = 1;
    double concentration = 0;
    std::uint64_t seed = 0;
};
std::vector<std::int64_t> sites_of_samples(std::span<std::int64_t const> labels,
                                           PartitionOptions const& options);

/// A data set's fields, as a deck names them.
struct FieldNames {
    std::vector<std::string> names; ///< each a dataset with a row per sample
};

/// Copies the samples of one site into a file of its own, with what they were made from, the names
/// of all classes, and mean, standard deviation, columns and sample rate of the whole.
///
/// Throws  Error 66 or 65 for the source; 73 or 74 for the file
void write_part(std::filesystem::path const& whole, FieldNames const& fields,
                std::span<std::int64_t const> samples, std::vector<std::string> const& classes,
                std::filesystem::path const& part);

} // namespace lockstep::federate
