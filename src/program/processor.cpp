#include "processor.hpp"

#include <sys/utsname.h>

namespace lockstep::program {

bool processor_runs(std::string const& kind) {
#if defined(__x86_64__)
    auto const v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    auto const v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
    auto const v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (kind == "x86-64-v2" || kind == "x86-64-v3" || kind == "x86-64-v4") {
        return kind.back() == '2' ? v2 : kind.back() == '3' ? v3 : v4;
    }
#endif
    ::utsname machine{};
    return ::uname(&machine) == 0 && kind == static_cast<char const*>(machine.machine);
}

} // namespace lockstep::program
