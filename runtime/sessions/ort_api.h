/* The part of ONNX Runtime's C API that the runner calls, declared by us, so that building needs no
 * header of ONNX Runtime and running takes whichever library is found.
 *
 * The API is a table of function pointers that OrtGetApiBase()->GetApi(version) returns. The table
 * is append-only: an entry never moves, and a newer library answers every older version. So an
 * entry is named by its position, which the documentation of struct OrtApi gives by its order.
 * GetApi is asked for the version that has the last entry used here; a library that is older
 * returns NULL.
 *
 * Every function with a status returns NULL on success. Enumerations are C ints. */
#ifndef PSPLIT_RUNTIME_ORT_API_H
#define PSPLIT_RUNTIME_ORT_API_H

#include <stddef.h>
#include <stdint.h>

/* Version 17 (ONNX Runtime 1.17, January 2024) holds all of ORT_ENTRIES, version 24 also those of
 * ORT_PLACEMENT_ENTRIES. */
enum { ORT_VERSION_NEEDED = 17, ORT_VERSION_PLACEMENT = 24 };

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtShapeInfo OrtShapeInfo; /* OrtTensorTypeAndShapeInfo */
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtIoBinding OrtIoBinding;
typedef struct OrtEpAssignedSubgraph OrtEpAssignedSubgraph;
typedef struct OrtEpAssignedNode OrtEpAssignedNode;

typedef struct OrtApiBase {
  const void *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

enum {
  ORT_LOG_FATAL = 4,
  ORT_TYPE_TENSOR = 1, /* ONNXType */
  ORT_TYPE_SEQUENCE = 2,
  ORT_TYPE_MAP = 3,
  ORT_DEVICE_ALLOCATOR = 0, /* OrtAllocatorType */
  ORT_MEMORY_DEFAULT = 0,   /* OrtMemType */
  ORT_STRING = 8 /* ONNXTensorElementDataType; up to 23 the numbers of TensorProto.DataType */
};

/* X(position, result, name, parameters) */
#define ORT_ENTRIES(X)                                                                            \
  X(2, const char *, GetErrorMessage, (const OrtStatus *))                                        \
  X(3, OrtStatus *, CreateEnv, (int severity, const char *log_id, OrtEnv **))                     \
  X(7, OrtStatus *, CreateSession,                                                                \
    (const OrtEnv *, const char *path, const OrtSessionOptions *, OrtSession **))                 \
  X(9, OrtStatus *, Run,                                                                          \
    (OrtSession *, const OrtRunOptions *, const char *const *input_names,                         \
     const OrtValue *const *inputs, size_t n_inputs, const char *const *output_names,             \
     size_t n_outputs, OrtValue **outputs))                                                       \
  X(10, OrtStatus *, CreateSessionOptions, (OrtSessionOptions **))                                \
  X(11, OrtStatus *, SetOptimizedModelFilePath, (OrtSessionOptions *, const char *path))          \
  X(14, OrtStatus *, EnableProfiling, (OrtSessionOptions *, const char *prefix))                  \
  X(23, OrtStatus *, SetSessionGraphOptimizationLevel, (OrtSessionOptions *, int level))          \
  X(24, OrtStatus *, SetIntraOpNumThreads, (OrtSessionOptions *, int n))                          \
  X(25, OrtStatus *, SetInterOpNumThreads, (OrtSessionOptions *, int n))                          \
  X(30, OrtStatus *, SessionGetInputCount, (const OrtSession *, size_t *))                        \
  X(31, OrtStatus *, SessionGetOutputCount, (const OrtSession *, size_t *))                       \
  X(32, OrtStatus *, SessionGetOverridableInitializerCount, (const OrtSession *, size_t *))       \
  X(33, OrtStatus *, SessionGetInputTypeInfo, (const OrtSession *, size_t index, OrtTypeInfo **)) \
  X(35, OrtStatus *, SessionGetOverridableInitializerTypeInfo,                                    \
    (const OrtSession *, size_t index, OrtTypeInfo **))                                           \
  X(36, OrtStatus *, SessionGetInputName,                                                         \
    (const OrtSession *, size_t index, OrtAllocator *, char **))                                  \
  X(37, OrtStatus *, SessionGetOutputName,                                                        \
    (const OrtSession *, size_t index, OrtAllocator *, char **))                                  \
  X(38, OrtStatus *, SessionGetOverridableInitializerName,                                        \
    (const OrtSession *, size_t index, OrtAllocator *, char **))                                  \
  X(39, OrtStatus *, CreateRunOptions, (OrtRunOptions **))                                        \
  X(46, OrtStatus *, RunOptionsSetTerminate, (OrtRunOptions *))                                   \
  X(47, OrtStatus *, RunOptionsUnsetTerminate, (OrtRunOptions *))                                 \
  X(48, OrtStatus *, CreateTensorAsOrtValue,                                                      \
    (OrtAllocator *, const int64_t *dims, size_t n_dims, int type, OrtValue **))                  \
  X(50, OrtStatus *, IsTensor, (const OrtValue *, int *))                                         \
  X(51, OrtStatus *, GetTensorMutableData, (OrtValue *, void **))                                 \
  X(53, OrtStatus *, GetStringTensorDataLength, (const OrtValue *, size_t *))                     \
  X(54, OrtStatus *, GetStringTensorContent,                                                      \
    (const OrtValue *, void *text, size_t n_bytes, size_t *offsets, size_t n_offsets))            \
  X(55, OrtStatus *, CastTypeInfoToTensorInfo, (const OrtTypeInfo *, const OrtShapeInfo **))      \
  X(56, OrtStatus *, GetOnnxTypeFromTypeInfo, (const OrtTypeInfo *, int *))                       \
  X(60, OrtStatus *, GetTensorElementType, (const OrtShapeInfo *, int *))                         \
  X(61, OrtStatus *, GetDimensionsCount, (const OrtShapeInfo *, size_t *))                        \
  X(62, OrtStatus *, GetDimensions, (const OrtShapeInfo *, int64_t *, size_t))                    \
  X(63, OrtStatus *, GetSymbolicDimensions, (const OrtShapeInfo *, const char **, size_t))        \
  X(65, OrtStatus *, GetTensorTypeAndShape, (const OrtValue *, OrtShapeInfo **))                  \
  X(67, OrtStatus *, GetValueType, (const OrtValue *, int *))                                     \
  X(68, OrtStatus *, CreateMemoryInfo,                                                            \
    (const char *name, int allocator, int id, int type, OrtMemoryInfo **))                        \
  X(69, OrtStatus *, CreateCpuMemoryInfo, (int allocator, int type, OrtMemoryInfo **))            \
  X(76, OrtStatus *, AllocatorFree, (OrtAllocator *, void *))                                     \
  X(78, OrtStatus *, GetAllocatorWithDefaultOptions, (OrtAllocator **))                           \
  X(80, OrtStatus *, GetValue, (const OrtValue *, int index, OrtAllocator *, OrtValue **))        \
  X(81, OrtStatus *, GetValueCount, (const OrtValue *, size_t *))                                 \
  X(82, OrtStatus *, CreateValue,                                                                 \
    (const OrtValue *const *values, size_t n, int type, OrtValue **))                             \
  X(92, void, ReleaseEnv, (OrtEnv *))                                                             \
  X(93, void, ReleaseStatus, (OrtStatus *))                                                       \
  X(94, void, ReleaseMemoryInfo, (OrtMemoryInfo *))                                               \
  X(95, void, ReleaseSession, (OrtSession *))                                                     \
  X(96, void, ReleaseValue, (OrtValue *))                                                         \
  X(97, void, ReleaseRunOptions, (OrtRunOptions *))                                               \
  X(98, void, ReleaseTypeInfo, (OrtTypeInfo *))                                                   \
  X(99, void, ReleaseTensorTypeAndShapeInfo, (OrtShapeInfo *))                                    \
  X(100, void, ReleaseSessionOptions, (OrtSessionOptions *))                                      \
  X(110, OrtStatus *, SessionEndProfiling, (OrtSession *, OrtAllocator *, char **))               \
  X(125, OrtStatus *, GetAvailableProviders, (char ***, int *n))                                  \
  X(126, OrtStatus *, ReleaseAvailableProviders, (char **, int n))                                \
  X(130, OrtStatus *, AddSessionConfigEntry,                                                      \
    (OrtSessionOptions *, const char *key, const char *value))                                    \
  X(133, OrtStatus *, RunWithBinding,                                                             \
    (OrtSession *, const OrtRunOptions *options, const OrtIoBinding *))                           \
  X(134, OrtStatus *, CreateIoBinding, (OrtSession *, OrtIoBinding **))                           \
  X(135, void, ReleaseIoBinding, (OrtIoBinding *))                                                \
  X(136, OrtStatus *, BindInput, (OrtIoBinding *, const char *name, const OrtValue *))            \
  X(138, OrtStatus *, BindOutputToDevice,                                                         \
    (OrtIoBinding *, const char *name, const OrtMemoryInfo *))                                    \
  X(140, OrtStatus *, GetBoundOutputValues,                                                       \
    (const OrtIoBinding *, OrtAllocator *, OrtValue ***, size_t *n))                              \
  X(141, void, ClearBoundInputs, (OrtIoBinding *))                                                \
  X(142, void, ClearBoundOutputs, (OrtIoBinding *))                                               \
  X(170, OrtStatus *, AppendExecutionProvider_TensorRT, (OrtSessionOptions *, const void *))      \
  X(171, OrtStatus *, CreateTensorRTProviderOptions, (void **))                                   \
  X(172, OrtStatus *, UpdateTensorRTProviderOptions,                                              \
    (void *, const char *const *keys, const char *const *values, size_t n))                       \
  X(174, void, ReleaseTensorRTProviderOptions, (void *))                                          \
  X(192, OrtStatus *, HasValue, (const OrtValue *, int *))                                        \
  X(204, OrtStatus *, AppendExecutionProvider_CUDA, (OrtSessionOptions *, const void *))          \
  X(205, OrtStatus *, CreateCUDAProviderOptions, (void **))                                       \
  X(206, OrtStatus *, UpdateCUDAProviderOptions,                                                  \
    (void *, const char *const *keys, const char *const *values, size_t n))                       \
  X(208, void, ReleaseCUDAProviderOptions, (void *))                                              \
  X(216, OrtStatus *, SessionOptionsAppendExecutionProvider,                                      \
    (OrtSessionOptions *, const char *name, const char *const *keys, const char *const *values,   \
     size_t n))                                                                                   \
  X(220, OrtStatus *, AppendExecutionProvider_CANN, (OrtSessionOptions *, const void *))          \
  X(221, OrtStatus *, CreateCANNProviderOptions, (void **))                                       \
  X(222, OrtStatus *, UpdateCANNProviderOptions,                                                  \
    (void *, const char *const *keys, const char *const *values, size_t n))                       \
  X(224, void, ReleaseCANNProviderOptions, (void *))                                              \
  X(228, OrtStatus *, RegisterCustomOpsLibrary_V2, (OrtSessionOptions *, const char *path))       \
  X(239, OrtStatus *, AppendExecutionProvider_Dnnl, (OrtSessionOptions *, const void *))          \
  X(240, OrtStatus *, CreateDnnlProviderOptions, (void **))                                       \
  X(241, OrtStatus *, UpdateDnnlProviderOptions,                                                  \
    (void *, const char *const *keys, const char *const *values, size_t n))                       \
  X(243, void, ReleaseDnnlProviderOptions, (void *))                                              \
  X(252, OrtStatus *, GetResizedStringTensorElementBuffer,                                        \
    (OrtValue *, size_t index, size_t n_bytes, char **))

/* What a session with "session.record_ep_graph_assignment_info" says of its nodes. All lent. */
#define ORT_PLACEMENT_ENTRIES(X)                                                          \
  X(407, OrtStatus *, Session_GetEpGraphAssignmentInfo,                                   \
    (const OrtSession *, const OrtEpAssignedSubgraph *const **, size_t *n))               \
  X(408, OrtStatus *, EpAssignedSubgraph_GetEpName,                                       \
    (const OrtEpAssignedSubgraph *, const char **))                                       \
  X(409, OrtStatus *, EpAssignedSubgraph_GetNodes,                                        \
    (const OrtEpAssignedSubgraph *, const OrtEpAssignedNode *const **, size_t *n))        \
  X(410, OrtStatus *, EpAssignedNode_GetName, (const OrtEpAssignedNode *, const char **)) \
  X(412, OrtStatus *, EpAssignedNode_GetOperatorType, (const OrtEpAssignedNode *, const char **))

#define X(position, result, name, parameters) result(*name) parameters;
typedef struct OrtApi {
  ORT_ENTRIES(X)
} OrtApi;
typedef struct OrtPlacementApi {
  ORT_PLACEMENT_ENTRIES(X)
} OrtPlacementApi;
#undef X

#endif
