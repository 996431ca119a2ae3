# The target lockstep::torch: LibTorch 2.11 or newer, wherever it comes from (LOCKSTEP_LIBTORCH,
# CMAKE_PREFIX_PATH, Torch_DIR, a wheel in a virtual environment). LOCKSTEP_LIBTORCH is the directory
# with its include/ and lib/, found from the others.
#
# A LibTorch with a GPU half is linked library by library: its own TorchConfig.cmake stops at a CUDA
# toolkit without cuBLAS and the like, which are needed neither to compile nor to link this program.

if(NOT LOCKSTEP_LIBTORCH)
    string(REPLACE ":" ";" prefixes "$ENV{LOCKSTEP_LIBTORCH}:$ENV{Torch_DIR}:$ENV{CMAKE_PREFIX_PATH}")
    foreach(place ${Torch_DIR} ${Torch_ROOT} ${CMAKE_PREFIX_PATH} ${prefixes})
        foreach(up "" /.. /../.. /../../..)
            get_filename_component(candidate "${place}${up}" REALPATH)
            if(EXISTS ${candidate}/lib/libtorch.so AND EXISTS ${candidate}/include/torch)
                set(LOCKSTEP_LIBTORCH ${candidate} CACHE PATH "LibTorch, with include/ and lib/")
                break()
            endif()
        endforeach()
        if(LOCKSTEP_LIBTORCH)
            break()
        endif()
    endforeach()
endif()

function(lockstep_torch_version include variable)
    foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
        if(EXISTS ${include}/${header})
            file(STRINGS ${include}/${header} line
                 REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
            string(REGEX MATCHALL "[0-9]+" numbers "${line}")
            list(JOIN numbers . version)
            if(version)
                set(${variable} ${version} PARENT_SCOPE)
            endif()
        endif()
    endforeach()
endfunction()

function(lockstep_check_torch_version version)
    if(version VERSION_LESS 2.11)
        message(FATAL_ERROR "LibTorch ${version} is too old: 2.11 or newer is needed.")
    endif()
endfunction()

foreach(half cuda hip)
    if(EXISTS ${LOCKSTEP_LIBTORCH}/lib/libtorch_${half}.so)
        set(torch_half ${half})
    endif()
endforeach()
add_library(lockstep::torch INTERFACE IMPORTED)

if(torch_half)
    set(include ${LOCKSTEP_LIBTORCH}/include)
    set(lib ${LOCKSTEP_LIBTORCH}/lib)
    lockstep_torch_version(${include} torch_version)
    lockstep_check_torch_version("${torch_version}")
    target_include_directories(lockstep::torch SYSTEM INTERFACE
                               ${include} ${include}/torch/csrc/api/include)
    # The GPU's half registers itself when it is loaded; nothing refers to it by name. It needs
    # libraries of the vendor that may be found only where the program runs.
    target_link_libraries(lockstep::torch INTERFACE
                          -Wl,--no-as-needed ${lib}/libtorch.so ${lib}/libtorch_cpu.so
                          ${lib}/libtorch_${torch_half}.so -Wl,--as-needed
                          ${lib}/libc10.so ${lib}/libc10_${torch_half}.so
                          -Wl,--allow-shlib-undefined)
    if(torch_half STREQUAL hip)
        target_compile_definitions(lockstep::torch INTERFACE USE_ROCM __HIP_PLATFORM_AMD__)
    endif()
    message(STATUS "LibTorch ${torch_version} with ${torch_half}: ${LOCKSTEP_LIBTORCH}")
else()
    if(LOCKSTEP_LIBTORCH)
        find_package(Torch QUIET PATHS ${LOCKSTEP_LIBTORCH} NO_DEFAULT_PATH)
    else()
        find_package(Torch QUIET)
    endif()
    if(NOT Torch_FOUND)
        message(FATAL_ERROR
                "LibTorch was not found. Set CMAKE_PREFIX_PATH to it; for a wheel: "
                "-DCMAKE_PREFIX_PATH=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')")
    endif()
    lockstep_check_torch_version(${Torch_VERSION})
    if(LOCKSTEP_WITH_NCCL OR LOCKSTEP_WITH_RCCL)
        message(FATAL_ERROR "LibTorch ${Torch_VERSION} (${TORCH_INSTALL_PREFIX}) has no GPU half, so "
                            "NCCL would have nothing to send. Use a CUDA or ROCm build of LibTorch.")
    endif()
    target_link_libraries(lockstep::torch INTERFACE ${TORCH_LIBRARIES})
    message(STATUS "LibTorch ${Torch_VERSION}: ${TORCH_INSTALL_PREFIX}")
endif()

# Where an installed Lockstep tells its users to look for the same LibTorch.
set(LOCKSTEP_TORCH_PREFIX ${LOCKSTEP_LIBTORCH})
if(NOT LOCKSTEP_TORCH_PREFIX)
    set(LOCKSTEP_TORCH_PREFIX ${TORCH_INSTALL_PREFIX})
endif()
