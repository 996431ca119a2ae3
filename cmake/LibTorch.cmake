# The target lockstep::torch: LibTorch 2.11 or newer, wherever it comes from (CMAKE_PREFIX_PATH,
# Torch_DIR, a wheel in a virtual environment).

find_package(Torch QUIET)
if(NOT Torch_FOUND)
    message(FATAL_ERROR
            "LibTorch was not found. Set CMAKE_PREFIX_PATH to it; for a wheel: "
            "-DCMAKE_PREFIX_PATH=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')")
endif()
if(Torch_VERSION VERSION_LESS 2.11)
    message(FATAL_ERROR "LibTorch ${Torch_VERSION} is too old: 2.11 or newer is needed.")
endif()
add_library(lockstep::torch INTERFACE IMPORTED)
target_link_libraries(lockstep::torch INTERFACE ${TORCH_LIBRARIES})
message(STATUS "LibTorch ${Torch_VERSION}: ${TORCH_INSTALL_PREFIX}")
