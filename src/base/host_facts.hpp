#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The cores that this process may run on, by number.
std::vector<int> allowed_cores();

/// Cores of this host that are switched on.
int host_cores();

/// Cores' worth of time that the control group grants: less than there are cores where a container
/// or a scheduler limits it.
double granted_cores();

/// Cores that this process alone can fill: those that it may run on, up to those that it is
/// granted.
int usable_cores();

/// This host's name, available before MPI has started.
std::string own_host();

/// Whether two names are of one host, with or without its domain.
bool is_same_host(std::string_view one, std::string_view other);

/// NUMA nodes of this host, as the kernel lists them: their numbers may have gaps.
int numa_nodes(std::filesystem::path const& listed = "/sys/devices/system/node");

/// "Intel(R) Xeon(R) …, 2 NUMA nodes".
std::string processor_text();

} // namespace lockstep
