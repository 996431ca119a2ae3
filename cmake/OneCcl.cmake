# The target lockstep::oneccl: Intel's oneCCL with its C interface (2022 and newer), looked for where
# CCL_ROOT says, in oneAPI's place and in the system. What links it needs SYCL's runtime, which a
# LibTorch for Intel's devices brings.

add_library(lockstep::oneccl INTERFACE IMPORTED)
set(roots ${CCL_ROOT} $ENV{CCL_ROOT} $ENV{ONEAPI_ROOT}/ccl/latest /opt/intel/oneapi/ccl/latest)
find_path(LOCKSTEP_ONECCL_INCLUDE oneapi/ccl.h HINTS ${roots} PATH_SUFFIXES include)
find_library(LOCKSTEP_ONECCL_LIBRARY NAMES ccl libccl.so.2 HINTS ${roots} PATH_SUFFIXES lib)
if(NOT LOCKSTEP_ONECCL_INCLUDE OR NOT LOCKSTEP_ONECCL_LIBRARY)
    message(FATAL_ERROR "LOCKSTEP_WITH_ONECCL needs oneapi/ccl.h and libccl of oneCCL 2022 or newer. "
                        "Set CCL_ROOT, or install the Python package oneccl-devel.")
endif()
target_include_directories(lockstep::oneccl SYSTEM INTERFACE ${LOCKSTEP_ONECCL_INCLUDE})
target_link_libraries(lockstep::oneccl INTERFACE ${LOCKSTEP_ONECCL_LIBRARY})
message(STATUS "oneCCL: ${LOCKSTEP_ONECCL_LIBRARY}")
