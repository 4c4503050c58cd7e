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
  # Code for sm_90, and as PTX, which later GPUs run too; for another one name it. (tests/compile/nvcc compiles every
  # launcher for sm_80, sm_90, sm_100 and sm_100f.) The runtime is a shared library, so that an emulator can stand in for it.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
endif()
