# Every third-party library, found once. docs/dependencies.md says what each is for and who may include it.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(Protobuf REQUIRED) # module mode, before gRPC
find_library(BATON_NGHTTP2 nghttp2 REQUIRED)
if(BATON_GRPC)
  find_package(gRPC CONFIG REQUIRED)
endif()
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(simdjson REQUIRED)
find_package(Boost 1.81 REQUIRED)
if(BATON_TESTS)
  find_package(GTest REQUIRED)
endif()

# ONNX Runtime: headers only. The library itself is opened at run time.
set(BATON_ORT_INCLUDE "${CMAKE_SOURCE_DIR}/.cache/onnxruntime/include" CACHE PATH "Folder of onnxruntime_c_api.h")
if(NOT EXISTS "${BATON_ORT_INCLUDE}/onnxruntime_c_api.h")
  message(FATAL_ERROR "ONNX Runtime's headers are missing: run `tools/bootstrap` first")
endif()
add_library(baton_ort_headers INTERFACE)
target_include_directories(baton_ort_headers SYSTEM INTERFACE ${BATON_ORT_INCLUDE})
target_compile_definitions(baton_ort_headers INTERFACE ORT_API_MANUAL_INIT)

# Asio, compiled once in adapters/http.
add_library(baton_boost INTERFACE)
target_link_libraries(baton_boost INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(baton_boost INTERFACE BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED)
