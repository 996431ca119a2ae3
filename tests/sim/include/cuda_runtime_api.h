#pragma once

// As much of the CUDA runtime's interface as the program's comm room calls, over simulated devices.

extern "C" {

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidDevice = 101,
};
using cudaStream_t = struct CUstream_st*;

char const* cudaGetErrorString(cudaError_t error);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device);

} // extern "C"
