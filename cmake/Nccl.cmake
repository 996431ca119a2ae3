# The target lockstep::nccl: NCCL with the CUDA runtime, or RCCL with HIP (which was configured and
# compiled nowhere: no ROCm was at hand). Looked for in
#   NCCL_ROOT, CUDAToolkit_ROOT      where set
#   the packages beside LibTorch     a wheel's own copies: nvidia/nccl, nvidia/cu13
#   a CUDA toolkit, the system
# A program must load one copy of each, so that of LibTorch goes first.

add_library(lockstep::nccl INTERFACE IMPORTED)

if(LOCKSTEP_WITH_RCCL)
    find_package(hip REQUIRED)
    find_package(rccl REQUIRED)
    target_link_libraries(lockstep::nccl INTERFACE hip::host rccl)
    target_compile_definitions(lockstep::nccl INTERFACE LOCKSTEP_USES_RCCL)
    return()
endif()

set(packages "")
if(LOCKSTEP_LIBTORCH)
    get_filename_component(beside ${LOCKSTEP_LIBTORCH} DIRECTORY)
    file(GLOB packages ${beside}/nvidia/nccl ${beside}/nvidia/cu1* ${beside}/nvidia/cuda_runtime)
endif()
file(GLOB toolkits /usr/local/cuda /usr/local/cuda-*)
set(roots ${NCCL_ROOT} $ENV{NCCL_ROOT} $ENV{NCCL_HOME} ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT}
          ${packages} $ENV{CUDA_HOME} $ENV{CUDA_PATH} ${toolkits})

# Wheels hold only the versioned names of the libraries.
find_path(LOCKSTEP_NCCL_INCLUDE nccl.h HINTS ${roots} PATH_SUFFIXES include)
find_library(LOCKSTEP_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${roots} PATH_SUFFIXES lib lib64)
find_library(LOCKSTEP_CUDART_LIBRARY NAMES cudart libcudart.so.13 libcudart.so.12 HINTS ${roots}
             PATH_SUFFIXES lib lib64)
# Some packages of the CUDA runtime come without crt/host_defines.h, which its own headers need.
find_path(LOCKSTEP_CUDA_INCLUDE crt/host_defines.h HINTS ${roots} PATH_SUFFIXES include)

foreach(part NCCL_INCLUDE NCCL_LIBRARY CUDART_LIBRARY CUDA_INCLUDE)
    if(NOT LOCKSTEP_${part})
        list(APPEND missing LOCKSTEP_${part})
    endif()
endforeach()
if(missing)
    message(FATAL_ERROR
            "LOCKSTEP_WITH_NCCL needs NCCL and the headers and library of the CUDA runtime; not "
            "found: ${missing}. Set NCCL_ROOT and CUDAToolkit_ROOT, or install the Python packages "
            "nvidia-nccl-cu13, nvidia-cuda-runtime and nvidia-cuda-crt beside LibTorch.")
endif()
target_include_directories(lockstep::nccl INTERFACE ${LOCKSTEP_NCCL_INCLUDE}
                           ${LOCKSTEP_CUDA_INCLUDE})
target_link_libraries(lockstep::nccl INTERFACE ${LOCKSTEP_NCCL_LIBRARY} ${LOCKSTEP_CUDART_LIBRARY})
message(STATUS "NCCL: ${LOCKSTEP_NCCL_LIBRARY}, CUDA runtime: ${LOCKSTEP_CUDART_LIBRARY}")
