# Device code, where there is a CUDA toolkit that knows sm_100: OCTET_CUDA says so, and CUDA is then an enabled language.
# SPDX-License-Identifier: MIT
find_program(OCTET_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
set(knows "")
if(OCTET_NVCC)
  execute_process(COMMAND ${OCTET_NVCC} --list-gpu-arch OUTPUT_VARIABLE knows ERROR_QUIET)
endif()
set(OCTET_CUDA OFF)
if(knows MATCHES "compute_100")
  set(OCTET_CUDA ON)
  if(NOT DEFINED CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${OCTET_NVCC})
  endif()
  # Before the FP8 instructions, with them, and the next generation. The runtime is a shared library and 90 is there as
  # PTX too, so that an emulator can stand in for both.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90 100-real)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
endif()
